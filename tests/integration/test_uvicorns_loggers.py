"""Loggers of uvicorn, in applications and in log configurations: a running server prints what uvicorn would."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.harness import KINDS, Server, until

pytestmark = pytest.mark.beyond_reference("they are another server's")

APP = "uvicorns_loggers:application"
ACCESS = r'"GET {} HTTP/1\.1" 200'
WHEN = pytest.mark.parametrize("when", ["import", "startup"])

LOGGING_CONFIG: dict[str, Any] = {  # the default of uvicorn, as its documentation has it
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "default": {"()": "uvicorn.logging.DefaultFormatter", "fmt": "%(levelprefix)s %(message)s", "use_colors": None},
        "access": {
            "()": "uvicorn.logging.AccessFormatter",
            "fmt": '%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s',
        },
    },
    "handlers": {
        "default": {"formatter": "default", "class": "logging.StreamHandler", "stream": "ext://sys.stderr"},
        "access": {"formatter": "access", "class": "logging.StreamHandler", "stream": "ext://sys.stdout"},
    },
    "loggers": {
        "uvicorn": {"handlers": ["default"], "level": "INFO", "propagate": False},
        "uvicorn.error": {"level": "INFO"},
        "uvicorn.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
    },
}

INI = """
[loggers]
keys=root, uvicorn
[handlers]
keys=console
[formatters]
keys=mine
[logger_root]
handlers=
[logger_uvicorn]
level=INFO
handlers=console
propagate=0
qualname=uvicorn
[handler_console]
class=StreamHandler
formatter=mine
args=(sys.stdout,)
[formatter_mine]
format=INI %(name)s %(message)s
"""


def server(*flags: str, recipe: str = "nothing", when: str = "import", kind: str = "asgi", **options: Any) -> Server:
    environ = {"RECIPE": recipe, "WHEN": when}
    return Server(APP if kind == "asgi" else f"asgi.{APP}", worker_class=kind, extra=flags, env=environ, **options)


def visit(running: Server) -> None:
    """A health check between two requests."""
    for path in ("/first", "/health", "/last"):
        assert running.get(path).status == 200


@pytest.mark.parametrize("kind", ["asgi", "uvicorn.workers.UvicornWorker", "uvicorn_worker.UvicornWorker"])
def test_an_application_logs_where_the_server_does(kind: str) -> None:
    with server(kind=kind) as running:
        visit(running)
    for name in ("uvicorn", "uvicorn.error"):
        assert len(running.log.matching(rf"^\[.*\] \[\d+\] \[INFO\] /first from {name}$")) == 1
        assert len(running.log.matching(f"/first from {name}$")) == 1


@WHEN
@pytest.mark.parametrize("recipe", ["filter_out", "filter_gunicorns"])
def test_a_filter_keeps_health_checks_out_of_the_access_log(recipe: str, when: str) -> None:
    with server("--access-log", recipe=recipe, when=when) as running:
        visit(running)
        running.out.wait(ACCESS.format("/last"))
    lines = [re.search(r'"GET (\S+) ', line) for line in running.out.text.splitlines()]
    assert [line and line[1] for line in lines] == ["/first", "/last"]
    assert '200 2 "-" "-"' in running.out.text  # the format is as before


@WHEN
def test_a_handler_of_the_application_has_access_lines(when: str) -> None:
    with server("--access-log", recipe="add_handler", when=when) as running:
        visit(running)
    assert len(running.log.matching(r"^ADDED 127\.0\.0\.1:\d+ - " + ACCESS.format("/health") + "$")) == 1
    assert len(running.out.matching(ACCESS.format("/health"))) == 1


@WHEN
def test_a_formatter_of_the_application_makes_access_lines(when: str) -> None:
    with server("--access-log", recipe="set_formatter", when=when) as running:
        visit(running)
    lines = running.out.text.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("SET ") for line in lines)


@WHEN
def test_an_application_takes_all_logs_over(when: str) -> None:
    with server("--access-log", recipe="take_over", when=when) as running:
        visit(running)
        assert running.get("/raise").status == 500
    assert running.out.text == ""
    assert len(running.log.matching("/first from uvicorn")) == 2
    assert len(running.log.matching("^TAKEN uvicorn.access .*" + ACCESS.format("/health"))) == 1
    assert len(running.log.matching("^TAKEN uvicorn.error .*GET /raise")) == 1


@WHEN
@pytest.mark.parametrize("flags", [(), ("--preload",)])
def test_an_application_that_disables_all_loggers_by_leaving_them_out(when: str, flags: tuple[str, ...]) -> None:
    with server("--access-log", *flags, recipe="leave_out", when=when, workers=2) as running:
        visit(running)
        assert running.get("/raise").status == 500
        running.out.wait(ACCESS.format("/last"))
    assert len(running.log.matching("disabled the server's loggers")) == 1
    assert len(running.log.matching("GET /raise")) >= 1
    assert len(running.out.matching(ACCESS.format("/health"))) == 1


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_uvicorns_own_log_configuration(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"log.{kind}"
    file.write_text(json.dumps(LOGGING_CONFIG))  # JSON is YAML, too
    with server("--log-config", str(file), wait=False) as running:
        until(running._accepts, "the server accepts connections")
        visit(running)
        assert running.get("/raise").status == 500
        running.out.wait("GET /raise")
    log = running.log
    for text in ("Starting tricorn", "Ready: ", "Booting worker", "Shutting down: Master"):
        assert len(log.matching(f"^INFO:     {text}")) == 1, text
    assert len(log.matching("^INFO:     /first from uvicorn")) == 2
    assert len(log.matching("^ERROR:    .*GET /raise")) == 1
    accesses = [re.sub(r":\d+ ", ":PORT ", line) for line in running.out.text.splitlines()]
    assert accesses == [
        'INFO:     127.0.0.1:PORT - "GET /first HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:PORT - "GET /health HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:PORT - "GET /last HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:PORT - "GET /raise HTTP/1.1" 500 Internal Server Error',
    ]


def test_an_ini_file_that_names_uvicorn(tmp_path: Path) -> None:
    (tmp_path / "log.ini").write_text(INI)
    with server("--log-config", str(tmp_path / "log.ini"), wait=False) as running:
        until(running._accepts, "the server accepts connections")
        visit(running)
    for text in ("uvicorn.error Starting", "uvicorn.error Ready: ", "uvicorn /first from", "uvicorn.error /first from"):
        assert len(running.out.matching(f"^INI {text}")) == 1, text
    assert len(running.out.matching(r"^INI uvicorn.access 127\.0\.0\.1:\d+ - " + ACCESS.format("/health"))) == 1
    assert running.log.text == ""


def test_what_flags_say_counts_more(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(LOGGING_CONFIG))
    with server("--log-config", str(tmp_path / "log.json"), "--no-access-log") as running:
        visit(running)
    assert running.out.text == ""
    flags = ("--log-config", str(tmp_path / "log.json"), "--log-level", "warning")
    with server(*flags, wait=False) as running:
        until(running._accepts, "the server accepts connections")
        visit(running)
    assert running.out.text == ""
    lines = running.log.text.splitlines()  # the level is for uvicorn.error and uvicorn.access, as with uvicorn
    assert lines == [f"INFO:     {path} from uvicorn" for path in ("/first", "/health", "/last")]


@KINDS
def test_a_filter_that_comes_late_takes_effect_and_no_line_comes_twice(worker_class: str, tmp_path: Path) -> None:
    """The core has the access log by then; gunicorn's name and hook, which every class has."""
    (tmp_path / "conf.py").write_text(
        "import logging\n"
        "def post_worker_init(worker):\n"
        "    logging.getLogger('gunicorn.access').addFilter(lambda record: record.args['U'] != '/headers')\n"
    )
    flags = ("-c", str(tmp_path / "conf.py"), "--access-log")
    with Server(worker_class=worker_class, extra=flags) as running:
        for path in ("/hello", "/headers", "/pid"):
            assert running.get(path).status == 200
        running.out.wait("GET /pid ")
    assert [len(running.out.matching(f"GET {path} ")) for path in ("/hello", "/headers", "/pid")] == [1, 0, 1]


def test_a_reload_changes_the_log_configuration(tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    file.write_text(json.dumps(LOGGING_CONFIG))
    with server("--log-config", str(file)) as running:
        running.get("/before")
        running.out.wait("^INFO: .*GET /before")
        changed = json.loads(json.dumps(LOGGING_CONFIG))
        changed["formatters"]["access"]["fmt"] = "CHANGED %(client_addr)s %(request_line)s"
        file.write_text(json.dumps(changed))
        running.signal(1)
        running.log.wait("^INFO:     Ready: ", count=2)
        numbers = itertools.count()

        def has_changed() -> bool:  # a connection that comes now may still be a worker's that leaves
            running.get(f"/after/{next(numbers)}")
            return bool(running.out.matching("^CHANGED .*GET /after"))

        until(has_changed, "the lines are as the new configuration has them")
    lines = [match[1] for match in running.out.matching(r"GET /after/(\d+) ")]
    assert len(lines) == len(set(lines)), "each is written once"
