"""Flags of uvicorn, hypercorn and granian: every one is in the table, and each becomes what the table says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from tricorn.config.borrowed import BORROWED, SAME, SERVERS, Nothing, Ours, Refused, Sets, rows
from tricorn.config.command_line import build_parser, read_arguments
from tricorn.config.load import Sources, load
from tricorn.config.registry import BY_NAME, SETTINGS
from tricorn.config.resolve import resolve
from tricorn.config.unavailable import UNAVAILABLE, Takes

from tests.harness import with_each

RECORDED = Path(__file__).with_name("flags_of_others.txt")
"""What each server's `--help` has, a line each: the name, the version, the flags."""


def recorded() -> dict[str, tuple[str, set[str]]]:
    lines = [line.split() for line in RECORDED.read_text().splitlines()]
    return {server: (version, set(flags)) for server, version, *flags in lines}


def shown(text: str) -> set[str]:
    """The flags at the beginnings of the paragraphs of a help page."""
    heads = re.findall(r"^ {1,4}(-.*?)(?:  |$)", text, re.MULTILINE)
    return {flag for head in heads for flag in re.findall(r"(?<![\w-])-{1,2}[a-zA-Z][\w-]*", head)}


@pytest.mark.parametrize("server", SERVERS)
def test_the_table_has_every_flag_and_no_other(server: str) -> None:
    _, flags = recorded()[server]
    own, same = set(rows(server)), set(SAME[server].split())
    assert not own & same
    assert own | same == flags


def installed(server: str) -> str | None:
    """The version; names of uvicorn's that this server has itself are no package."""
    try:
        return metadata.version(server)
    except metadata.PackageNotFoundError:
        return None


@pytest.mark.parametrize("server", SERVERS)
def test_what_is_recorded_is_what_the_server_has(server: str) -> None:
    version, flags = recorded()[server]
    if installed(server) != version:
        return  # what is recorded stands for it
    done = subprocess.run(
        [sys.executable, "-m", server, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    assert shown(done.stdout) == flags


def test_flags_that_are_the_same_are_flags_of_ours() -> None:
    ours = {flag for setting in SETTINGS for flag in setting.flags} | {"-h", "--help", "-v", "--version"}
    for server in SERVERS:
        assert set(SAME[server].split()) <= ours


def test_a_flag_of_ours_that_means_something_else_is_said_to_be_ours() -> None:
    ours = {flag for some in (SETTINGS, UNAVAILABLE) for record in some for flag in record.flags}
    borrowed = {flag for row in BORROWED if not isinstance(row.becomes, Ours) for flag in row.flags.split()}
    assert not ours & borrowed
    for row in BORROWED:
        if isinstance(row.becomes, Ours):
            assert set(row.flags.split()) <= ours | borrowed


VALUES = {
    "bind": "127.0.0.1",
    "--insecure-bind": ":90",
    "--interface": "asgi3",
    "--http": "auto",
    "--ws": "auto",
    "--http1-header-read-timeout": "5000",
    "--uds": "/tmp/s",
    "--uds-permissions": "660",
    "--loop": "asyncio",
    "--lifespan": "on",
    "--ws-per-message-deflate": "false",
    "--working-dir": ".",
    "--env-files": __file__,
    "--reload-paths": ".",
    **dict.fromkeys(("--ssl-certfile", "--ssl-certificate", "--ssl-keyfile", "--ssl-crl"), __file__),
    "--ssl-cert-reqs": "2",
    "--verify-mode": "CERT_REQUIRED",
    "--ssl-protocol-min": "tls1.3",
}


@with_each("row", {f"{row.flags} of {row.servers}": row for row in BORROWED})
def test_each_flag_is_read_with_what_follows_it(row: object) -> None:
    becomes = row.becomes  # type: ignore[attr-defined]
    if isinstance(becomes, Ours):
        return
    for flag in row.flags.split():  # type: ignore[attr-defined]
        value = [] if becomes.takes is Takes.NOTHING else [VALUES.get(flag, "90")]
        layer = read_arguments([flag, *value, "main:app"])
        assert layer.values.pop("wsgi_app").value == "main:app"  # type: ignore[attr-defined]
        assert bool(layer.asked) is isinstance(becomes, Refused), flag
        config = resolve([layer], os.getcwd())
        for name in layer.values:
            assert not config.is_default(name)
            assert name in becomes.settings, "documents name the setting"
            assert config.origin(name) == flag


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("--host 0.0.0.0 --port 80", {"bind": ("0.0.0.0:80",)}),
        ("--host ::1", {"bind": ("[::1]:8000",)}),
        ("--port 9000", {"bind": ("127.0.0.1:9000",)}),
        ("--uds /run/a.sock", {"bind": ("unix:/run/a.sock",)}),
        ("--fd 3", {"bind": ("fd://3",)}),
        ("--timeout-keep-alive 65 --limit-max-requests 9", {"keepalive": 65, "max_requests": 9}),
        ("--limit-concurrency 50", {"worker_connections": 50, "queue_limit": 1}),
        ("--loop uvloop --lifespan off", {"asgi_loop": "uvloop", "asgi_lifespan": "off"}),
        ("--no-proxy-headers", {"forwarded_allow_ips": ""}),
        ("--no-access-log", {"accesslog": None}),
        ("--access-log", {"accesslog": "-"}),
        ("--no-server-header --no-date-header", {"server_header": "", "date_header": False}),
        ("--server-header", {"server_header": "tricorn"}),
        ("--header X-A:1 --header X-B:2", {"headers": (("X-A", "1"), ("X-B", "2"))}),
        ("--ws-max-size 1024 --ws-per-message-deflate false", {"websocket_compression": False}),
        ("--app-dir src --factory", {"pythonpath": ("src",), "factory": True}),
        ("--interface wsgi", {"worker_class": "sync"}),
        ("--interface asginl", {"worker_class": "asgi", "asgi_lifespan": "off"}),
        ("--debug", {"raw_env": (("PYTHONASYNCIODEBUG", "1"),)}),
        ("--read-timeout 7", {"header_timeout": 7, "body_timeout": 7}),
        ("--no-use-colors", {"log_format": "gunicorn"}),
        ("--log-level trace", {"loglevel": "debug"}),
        ("--workers-lifetime 1h30m --workers-max-rss 512", {"max_worker_lifetime": 5400, "max_worker_memory": 1 << 29}),
        ("--http1-header-read-timeout 5000", {"header_timeout": 5}),
        ("--uds-permissions 660", {"umask": 0o006}),
        ("--uds-permissions 700", {"umask": 0o066}),
        ("-k uvloop", {"worker_class": "uvloop"}),
        ("--ssl-certfile c --ssl-keyfile k --ssl-cert-reqs 1", {"certfile": "c", "keyfile": "k", "cert_reqs": 1}),
        ("--ssl-ca ca --ssl-crl crl", {"ca_certs": "ca", "tls_crl_file": ("crl",)}),
        ("--ssl-client-verify --ssl-protocol-min tls1.3", {"cert_reqs": 2, "tls_min_version": "1.3"}),
        ("--verify-mode CERT_OPTIONAL", {"cert_reqs": 1}),
        ("--bind :443 --insecure-bind host:80", {"bind": (":443", "http://host:80")}),
        ("--insecure-bind [::1]", {"bind": ("http://[::1]:8000",)}),
        ("--insecure-bind unix:/run/a", {"bind": ("http+unix:/run/a",)}),
        ("--http zttp --http2", {"http_protocols": ("h2", "h1"), "http2_cleartext": "prior-knowledge"}),
        ("--http auto", {"http_protocols": ("h1",), "http2_cleartext": "off"}),
        ("--http 1", {"http_protocols": ("h1",), "http2_cleartext": "off"}),
        ("--http 2", {"http_protocols": ("h2",), "http2_cleartext": "prior-knowledge"}),
        (
            "--http2-initial-stream-window-size 1048576 --http2-max-headers-size 9000",
            {"http2_initial_window_size": 1 << 20, "http2_max_header_list_size": 9000},
        ),
    ],
)
def test_command_lines(line: str, settings: dict[str, object]) -> None:
    config = resolve([read_arguments([*line.split(), "main:app"])])
    assert {name: config.value(name) for name in settings} == settings


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--interface asgi2", "argument --interface: expected one of auto, asgi, asgi3, asginl, wsgi, got 'asgi2'"),
        ("--timeout-keep-alive x", "argument --timeout-keep-alive: expected a number of seconds"),
        ("--workers-lifetime soon", "argument --workers-lifetime: expected seconds, or a duration such as 1m30s"),
        ("--port", "argument --port: expected one argument"),
    ],
)
def test_foreign_flags_that_are_not_understood(line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        read_arguments(line.split())
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


def test_what_is_not_there_is_refused_or_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = "main:app --metrics --ssl-keyfile-password secret --dirty-app shop:jobs"
    with pytest.raises(SystemExit) as caught:
        load(Sources.here(line.split()))
    assert caught.value.code == 2
    assert "error: argument --metrics: use --admin-bind HOST:PORT instead" in capsys.readouterr().err
    warnings = load(Sources.here([*line.split(), "--unavailable", "warn"])).warnings
    assert [warning.partition(":")[0] for warning in warnings] == [
        f"argument {flag}" for flag in ("--metrics", "--ssl-keyfile-password", "--dirty-app")
    ]
    assert all(warning.endswith("It was ignored (unavailable = warn).") for warning in warnings)


def test_the_last_of_several_flags_counts() -> None:
    layer = read_arguments(["--timeout-keep-alive", "5", "--keep-alive", "7", "--limit-max-requests", "1"])
    assert layer.values["keepalive"].value == "7"
    assert layer.values["max_requests"].origin == "--limit-max-requests"


def test_a_prefix_is_not_enough_for_a_borrowed_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_arguments(["--graceful", "3"]).values["graceful_timeout"].value == "3"
    with pytest.raises(SystemExit):
        read_arguments(["--timeout-keep", "3"])
    capsys.readouterr()


def test_help_is_not_longer_for_them() -> None:
    text = build_parser().format_help()
    assert "--timeout-keep-alive" not in text


def test_a_flag_without_effect_is_a_default_or_means_something_else_there() -> None:
    """Where a setting of ours does what the flag asks for, the flag sets it."""
    pointing = {
        flag
        for row in BORROWED
        if isinstance(row.becomes, Nothing) and "see `" in row.becomes.why
        for flag in row.flags.split()
    }
    defaults = {"--http1-keep-alive", "--proxy-headers"}
    other_units = {"--h11-max-incomplete-event-size", "--http1-buffer-size"}  # of a buffer, not of a request
    other_means = {"--timeout-worker-healthcheck", "--reload-delay", "--reload-tick"}  # of a poll that is not there
    # The window of a connection is never smaller than 1 MiB, and follows the largest of a stream.
    other_means |= {"--http2-initial-connection-window-size", "--http2-max-send-buffer-size"}
    other_means |= {"--http2-keep-alive-interval", "--http2-keep-alive-timeout"}  # no pings are sent
    assert pointing == defaults | other_units | other_means


def test_a_flag_that_is_refused_says_what_to_do_where_something_can_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    (asked,) = read_arguments(["--metrics", "main:app"]).asked
    with pytest.raises(SystemExit):
        asked.refuse(asked.sentence)
    assert "argument --metrics: use --admin-bind HOST:PORT instead: it serves" in capsys.readouterr().err


def test_names_of_settings_are_right() -> None:
    for row in BORROWED:
        if isinstance(row.becomes, Sets) and not row.becomes.settings.startswith("no effect"):
            for name in re.findall(r"`(\w+)", row.becomes.settings.partition(" (")[0]):
                assert name in BY_NAME
