"""Variables of uvicorn and granian: every one is known, and means what its flag means."""

from __future__ import annotations

import importlib
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from tricorn.config.borrowed_environment import APPLICATION, SERVERS, arguments, variables
from tricorn.config.command_line import read_borrowed_environment
from tricorn.config.config import Config
from tricorn.config.load import Loaded, Sources, load
from tricorn.config.resolve import resolve
from tricorn.errors import ConfigError

RECORDED = Path(__file__).with_name("variables_of_others.txt")
"""What the options of each server's click command are read from, a line each: the name, the version, the variables."""


def recorded() -> dict[str, tuple[str, set[str]]]:
    lines = [line.split() for line in RECORDED.read_text().splitlines()]
    return {server: (version, set(names)) for server, version, *names in lines}


@pytest.mark.parametrize("server", SERVERS)
def test_every_variable_is_known_and_no_other(server: str) -> None:
    _, names = recorded()[server]
    assert {*variables(server), *({APPLICATION} if server == "uvicorn" else ())} == names


COMMANDS = {"uvicorn": ("uvicorn.main", "main"), "granian": ("granian.cli", "cli")}


@pytest.mark.parametrize("server", SERVERS)
def test_what_is_recorded_is_what_the_server_has(server: str) -> None:
    version, names = recorded()[server]
    try:
        if metadata.version(server) != version:
            return
    except metadata.PackageNotFoundError:
        return  # what is recorded stands for it
    module, name = COMMANDS[server]
    command: Any = getattr(importlib.import_module(module), name)
    options = [each for each in command.params if each.param_type_name == "option" and not each.is_eager]
    found = {f"{server}_{each.name}".upper() for each in options}
    assert found | {each.envvar for each in command.params if each.envvar} == names


def configure(text: str) -> Config:
    return resolve([read_borrowed_environment(dict(line.split("=", 1) for line in text.splitlines()))], os.getcwd())


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("UVICORN_HOST=0.0.0.0\nUVICORN_PORT=80", {"bind": ("0.0.0.0:80",)}),
        ("UVICORN_PORT=9000", {"bind": ("127.0.0.1:9000",)}),
        ("GRANIAN_HOST=::1", {"bind": ("[::1]:8000",)}),
        ("UVICORN_UDS=/run/a.sock\nUVICORN_PORT=80", {"bind": ("unix:/run/a.sock",)}),
        ("GRANIAN_UDS=/run/a.sock\nGRANIAN_UDS_PERMISSIONS=660", {"bind": ("unix:/run/a.sock",), "umask": 0o006}),
        ("UVICORN_APP=main:app", {"wsgi_app": "main:app"}),
        ("UVICORN_WORKERS=4\nGRANIAN_WORKERS=3\nGRANIAN_BACKLOG=128", {"workers": 4, "backlog": 128}),
        ("UVICORN_TIMEOUT_KEEP_ALIVE=65\nUVICORN_LIMIT_MAX_REQUESTS=9", {"keepalive": 65, "max_requests": 9}),
        ("UVICORN_LIMIT_CONCURRENCY=50", {"worker_connections": 50, "queue_limit": 1}),
        ("UVICORN_RELOAD=true\nUVICORN_FACTORY=1", {"reload": True, "factory": True}),
        ("UVICORN_RELOAD=false\nGRANIAN_FACTORY=no", {"reload": False, "factory": False}),
        ("UVICORN_ACCESS_LOG=true", {"accesslog": "-"}),
        ("GRANIAN_LOG_ACCESS_ENABLED=false", {"accesslog": None}),
        ("UVICORN_SERVER_HEADER=false\nUVICORN_DATE_HEADER=0", {"server_header": "", "date_header": False}),
        ("UVICORN_SERVER_HEADER=true", {"server_header": "tricorn"}),
        ("UVICORN_PROXY_HEADERS=false", {"forwarded_allow_ips": ""}),
        ("UVICORN_HEADERS=X-A:1 X-B:-2", {"headers": (("X-A", "1"), ("X-B", "-2"))}),
        ("UVICORN_RELOAD_DIRS=.:..", {"reload_dirs": (".", "..")}),
        ("UVICORN_RELOAD_INCLUDES=*.html *.css", {"reload_includes": ("*.html", "*.css")}),
        ("GRANIAN_RELOAD_IGNORE_PATHS=a b:c", {"reload_excludes": ("a b", "c")}),
        ("GRANIAN_INTERFACE=asginl\nGRANIAN_LOOP=uvloop", {"worker_class": "asgi", "asgi_lifespan": "off"}),
        ("GRANIAN_HTTP1_KEEP_ALIVE=off\nGRANIAN_WEBSOCKETS=true\nGRANIAN_LOG_ENABLED=true", {"keepalive": 0}),
        ("GRANIAN_WORKERS_LIFETIME=1h\nGRANIAN_METRICS_ENABLED=false", {"max_worker_lifetime": 3600}),
        ("UVICORN_WS=wsproto\nUVICORN_WS_PER_MESSAGE_DEFLATE=false", {"websocket_compression": False}),
        ("UVICORN_PORT=tcp://10.0.0.7:80\nUVICORN_SERVICE_HOST=10.0.0.7", {"bind": ("127.0.0.1:8000",)}),
        ("UVICORN_PORT=\nUVICORN_SOMETHING=1\nGRANIAN_APP=x:y", {"bind": ("127.0.0.1:8000",), "wsgi_app": None}),
    ],
)
def test_foreign_variables_set_settings(text: str, settings: dict[str, object]) -> None:
    config = configure(text)
    assert {name: config.value(name) for name in settings} == settings


def test_each_is_read_with_a_value() -> None:
    """None ends the parser, whether its flag is the same here, another, or without effect."""
    values = {
        "UVICORN_INTERFACE": "asgi3",
        "UVICORN_HTTP": "auto",
        "UVICORN_WS": "auto",
        "GRANIAN_INTERFACE": "wsgi",
        "GRANIAN_HTTP": "1",
        "GRANIAN_WORKING_DIR": ".",
        "GRANIAN_UDS_PERMISSIONS": "600",
        "UVICORN_WS_PER_MESSAGE_DEFLATE": "true",
    }
    for server in SERVERS:
        for variable in variables(server):
            for value in (values.get(variable, "1"), values.get(variable, "0")):
                read_borrowed_environment({variable: value})


def test_where_a_value_comes_from() -> None:
    config = configure("UVICORN_HOST=h\nUVICORN_PORT=80\nUVICORN_TIMEOUT_KEEP_ALIVE=65")
    assert config.origin("bind") == "UVICORN_HOST, UVICORN_PORT"
    assert config.origin("keepalive") == "UVICORN_TIMEOUT_KEEP_ALIVE"


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("UVICORN_TIMEOUT_KEEP_ALIVE", "x", "argument --timeout-keep-alive: expected a number of seconds"),
        ("UVICORN_ACCESS_LOG", "perhaps", "argument --access-log: ignored explicit argument 'perhaps'"),
        ("GRANIAN_INTERFACE", "rsgi", "argument --interface: expected one of auto, asgi"),
    ],
)
def test_foreign_variables_that_are_not_understood(
    variable: str, value: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        read_borrowed_environment({variable: value})
    assert caught.value.code == 2
    assert f"in the environment variable {variable}: {words}" in capsys.readouterr().err


def test_what_is_not_there_is_refused_or_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"UVICORN_SSL_KEYFILE_PASSWORD": "k", "GRANIAN_WEBSOCKETS": "false", "UVICORN_WORKERS": "2"}
    with pytest.raises(SystemExit) as caught:
        load(Sources(("main:app",), environ, str(tmp_path)))
    assert caught.value.code == 2
    assert "in the environment variable GRANIAN_WEBSOCKETS: argument --no-ws: " in capsys.readouterr().err
    warnings = load(Sources(("main:app", "--unavailable", "warn"), environ, str(tmp_path))).warnings
    assert [warning.partition(": ")[0] for warning in warnings] == [
        f"in the environment variable {name}" for name in ("GRANIAN_WEBSOCKETS", "UVICORN_SSL_KEYFILE_PASSWORD")
    ]


def loaded(environ: dict[str, str], directory: Path, *argv: str) -> Loaded:
    return load(Sources(("main:app", *argv), environ, str(directory)))


def test_those_in_force_are_told(tmp_path: Path) -> None:
    environ = {"UVICORN_WORKERS": "2", "UVICORN_PORT": "80", "WEB_CONCURRENCY": "3", "FORWARDED_ALLOW_IPS": "*"}
    assert loaded(environ, tmp_path).variables == ("FORWARDED_ALLOW_IPS", "UVICORN_PORT", "UVICORN_WORKERS")
    assert loaded(environ, tmp_path, "-b", ":1").variables == ("FORWARDED_ALLOW_IPS", "UVICORN_WORKERS")
    assert loaded({"TRICORN_WORKERS": "2"}, tmp_path).variables == ()


def test_a_program_that_reads_no_environment(tmp_path: Path) -> None:
    sources = Sources(("main:app",), {"UVICORN_WORKERS": "2"}, str(tmp_path), reads_environment=False)
    assert load(sources).config.workers == 1


def test_an_address_that_cannot_be_is_refused_with_its_variables(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="UVICORN_PORT"):
        loaded({"UVICORN_PORT": "many"}, tmp_path)


def test_the_weaker_server_comes_first() -> None:
    given = [variable for variable, _ in arguments({"UVICORN_WORKERS": "1", "GRANIAN_WORKERS": "2", APPLICATION: "a"})]
    assert given == ["GRANIAN_WORKERS", "UVICORN_WORKERS", APPLICATION]
