"""`tricorn init`: what it prints and where, what it refuses, and what it says beside."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tricorn.cli import main
from tricorn.config.borrowed import BORROWED
from tricorn.config.registry import SETTINGS
from tricorn_tools.init import command, docker, template

from tests.harness import with_each

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def _here(nothing_configured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a directory without a configuration. Variables in force would be carried over into the files."""
    monkeypatch.delenv("PORT")


def printed(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[str, str]:
    """What stdout and stderr get."""
    assert main(["init", *words]) == status
    done = capsys.readouterr()
    return done.out, done.err


def test_nothing_is_written_without_o(nothing_configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in command.KINDS:
        text, _ = printed(capsys, kind, "shop:app")
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
    assert list(nothing_configured.iterdir()) == []


def test_o_writes_the_files_and_keeps_what_is_there(
    nothing_configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = nothing_configured / "deploy"
    text, _ = printed(capsys, "systemd", "--socket", "-o", str(target), "shop:app")
    written = {path.name for path in target.iterdir()}
    assert written == {"shop.service", "shop.socket"}
    assert text.split() == [str(target / "shop.service"), str(target / "shop.socket")]

    (target / "shop.service").write_text("mine")
    (target / "shop.socket").unlink()
    _, complaint = printed(capsys, "systemd", "--socket", "-o", str(target), "shop:app", status=1)
    assert f"Nothing written: {target / 'shop.service'} exists. Use --force to replace it." in complaint
    assert [path.name for path in target.iterdir()] == ["shop.service"]

    printed(capsys, "systemd", "--socket", "--force", "-o", str(target), "shop:app")
    assert (target / "shop.service").read_text() != "mine"


def test_a_directory_that_cannot_be_written_is_named(
    nothing_configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (nothing_configured / "file").write_text("")
    _, complaint = printed(capsys, "nginx", "-o", "file/deploy", status=1)
    assert "Error: Cannot write file/deploy: Not a directory." in complaint


def test_init_usage(capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = printed(capsys, "--help")
    for name in command.KINDS:
        assert name in text
    _, complaint = printed(capsys, "sytemd", "shop:app", status=2)
    assert "there is no kind 'sytemd'; did you mean 'systemd'?" in complaint
    printed(capsys, status=2)
    _, complaint = printed(capsys, "systemd", status=1)
    assert "No application module specified" in complaint
    with pytest.raises(SystemExit) as left:  # a flag of the server, read by its own parser
        main(["init", "systemd", "--no-such-flag", "shop:app"])
    assert left.value.code == 2


def test_its_flags_are_none_of_the_servers() -> None:
    servers = {flag for setting in SETTINGS for flag in setting.flags}
    servers |= {flag for row in BORROWED for flag in row.flags.split()}
    for name, kind in command.KINDS.items():
        own = set(command._parser(name, kind)._option_string_actions) - {"-h", "--help"}
        assert not own & servers, name


def test_extras_are_those_of_the_distribution() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    extras = set(re.findall(r"^([a-z]+) = \[", text.partition("[project.optional-dependencies]")[2], re.MULTILINE))
    assert extras >= docker.EXTRAS


def test_variables_in_force_are_carried_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", "3")
    monkeypatch.setenv("TRICORN_TIMEOUT", "7")  # weaker than the command line
    monkeypatch.setenv("GUNICORN_CMD_ARGS", "--backlog 100")
    monkeypatch.setenv("TRICORN_RAW_ENV", "PASSWORD=hunter2")
    for kind, line in (
        ("systemd", 'Environment="GUNICORN_CMD_ARGS=--backlog 100"'),
        ("docker", 'ENV GUNICORN_CMD_ARGS="--backlog 100"'),
        ("compose", 'GUNICORN_CMD_ARGS: "--backlog 100"'),
        ("kubernetes", '{name: GUNICORN_CMD_ARGS, value: "--backlog 100"}'),
    ):
        text, said = printed(capsys, kind, "--timeout", "9", "shop:app")
        assert line in text, kind
        assert "WEB_CONCURRENCY" in text, kind
        assert "TRICORN_TIMEOUT" not in text, kind
        assert "hunter2" not in text + said, kind
        assert "TRICORN_RAW_ENV is not in the files" in said, kind


def test_values_of_env_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = printed(capsys, "systemd", "-e", "PASSWORD=secret", "shop:app")
    assert "The values of --env stand in the files as they are." in said


@with_each("kind", ["docker", "compose", "kubernetes"])
def test_what_a_container_lacks_is_added_and_said(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, said = printed(capsys, kind, "shop:app")
    assert '"-b", "0.0.0.0:8000"' in text
    assert "Added to the command line: -b 0.0.0.0:8000." in said
    assert 'In a configuration file: bind = "0.0.0.0:8000"' in said
    fits = ("-b", "0.0.0.0:9000", "--admin-bind", "0.0.0.0:9001", "--drain-delay", "5", "shop:app")
    text, said = printed(capsys, kind, *fits)
    assert "Added" not in said
    assert "9000" in text


def test_kubernetes_asks_at_an_admin_listener(capsys: pytest.CaptureFixture[str]) -> None:
    text, said = printed(capsys, "kubernetes", "-b", "0.0.0.0:8001", "shop:app")
    assert '"--admin-bind", "0.0.0.0:8002"' in text, "8001 is taken"
    assert 'In a configuration file: admin_bind = "0.0.0.0:8002"' in said
    assert '"--drain-delay", "10"' in text


@with_each("kind", ["docker", "compose", "kubernetes"])
def test_an_address_of_the_command_line_is_not_contradicted(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, said = printed(capsys, kind, "-b", "127.0.0.1:9000", "shop:app", status=1)
    assert "bind = 127.0.0.1:9000 (--bind). Use -b 0.0.0.0:9000." in said


def test_an_address_of_a_file_is_outdone_and_said(nothing_configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (nothing_configured / "gunicorn.conf.py").write_text('bind = "localhost:9000"\n')
    text, said = printed(capsys, "docker", "shop:app")
    assert '"-b", "0.0.0.0:9000"' in text
    assert "(bind = localhost:9000 (./gunicorn.conf.py:1))" in said


def test_a_server_that_leaves_the_foreground_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("systemd", "docker", "compose", "kubernetes"):
        _, said = printed(capsys, kind, "-D", "-b", ":80", "--admin-bind", ":81", "shop:app", status=1)
        assert "daemon = True (--daemon): a server under a supervisor stays in the foreground." in said, kind


def test_descriptors_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in command.KINDS:
        _, said = printed(capsys, kind, "-b", "fd://3", "shop:app", status=1)
        assert "bind = fd://3 (--bind)" in said, kind


def test_settings_that_do_not_suit_a_container_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--log-file", "error.log", "-p", "pid", "--reload", "-u", "0", "-b", ":80", "-b", "unix:/run/a/s", "a:b")
    _, said = printed(capsys, "docker", *words)
    for expected in (
        'Set errorlog = "-"',
        "A container needs no pidfile",
        "The server is root in its container: user = 0 (--user)",
        "reload = True (--reload) is for development",
        "A unix socket is in the container alone",
        "neither requirements.txt nor a pyproject.toml with [project]",
    ):
        assert expected in said


@with_each("kind", ["nginx", "haproxy"])
def test_what_a_proxy_is_to_be_believed_for(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    proxy = {"nginx": "nginx", "haproxy": "HAProxy"}[kind]
    _, said = printed(capsys, kind, "--forwarded-allow-ips", "10.0.0.0/8")
    assert f"The server does not believe what {proxy} says of clients: forwarded_allow_ips = 10.0.0.0/8" in said
    _, said = printed(capsys, kind, "-b", "0.0.0.0:80")
    assert f"If {proxy} is on another machine, its address must be in forwarded_allow_ips" in said
    text, said = printed(capsys, kind, "-b", "unix:/run/shop/s", "--forwarded-allow-ips", "10.0.0.0/8")
    assert "forwarded_allow_ips" not in said
    assert "The server believes peers on its unix socket." in text
    fits = ("--keep-alive", "75", "--trusted-proxy-headers", "x-forwarded-for", "--admin-bind", "127.0.0.1:8001")
    _, said = printed(capsys, kind, *fits, "--drain-delay", "5")
    assert "keepalive" not in said
    assert "REMOTE_ADDR" not in said


@with_each("kind", ["nginx", "haproxy", "envoy"])
def test_hosts_are_reached_from_elsewhere(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", kind, "--hosts", "app-1,app-2"]) == 1
    assert "--hosts needs an address that other machines reach: bind = " in capsys.readouterr().err
    assert main(["init", kind, "--hosts", "app-1", "-b", "0.0.0.0:80", "--admin-bind", "127.0.0.1:81"]) == 1
    assert "--hosts needs a readiness path that other machines reach: admin_bind = " in capsys.readouterr().err
    _, said = printed(capsys, kind, "--hosts", "app-1", "-b", "0.0.0.0:80")
    assert "must be in forwarded_allow_ips" in said


def test_a_public_address_that_envoy_cannot_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "envoy", "--public", "here"]) == 1
    assert "Invalid value for --public: here: expected PORT or HOST:PORT." in capsys.readouterr().err


def test_without_jinja2_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    _, complaint = printed(capsys, "nginx", "shop:app", status=1)
    assert "needs Jinja2, which is not installed: pip install 'tricorn[tools]'." in complaint


def test_every_template_is_filled_by_a_kind() -> None:
    """A template that no kind names is dead, and so is a name without a template."""
    source = "".join(path.read_text() for path in (template.DIRECTORY.parent).glob("*.py"))
    named = set(re.findall(r'\bfill\(\s*"([\w.]+)"', source))
    assert {path.name for path in template.DIRECTORY.iterdir()} == {f"{name}.j2" for name in named}
