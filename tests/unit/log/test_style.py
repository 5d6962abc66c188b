"""Short lines for a terminal: when there are some, how they look, and that `json` and `gunicorn` stay what they are."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from tricorn import log as logs
from tricorn.config.config import Config
from tricorn.log import Logger, style

Configure = Callable[..., Config]
LINE = re.compile(r"\d\d:\d\d:\d\d (\w+) +(.*)")


@pytest.fixture(autouse=True)
def _no_colours_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def terminals(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Descriptors that are terminals."""
    found: set[int] = set()
    monkeypatch.setattr(style, "_is_terminal", found.__contains__)
    return found


def test_auto_is_pretty_on_a_terminal_and_gunicorns_elsewhere(configure: Configure, terminals: set[int]) -> None:
    config = configure(accesslog="-")
    assert (style.of_errors(config), style.of_accesses(config)) == ("gunicorn", "gunicorn")
    terminals.add(2)
    assert (style.of_errors(config), style.of_accesses(config)) == ("pretty", "gunicorn"), "each log its own place"
    terminals.add(1)
    assert style.of_accesses(config) == "pretty"
    assert style.of_errors(configure(errorlog="file")) == "gunicorn"


@pytest.mark.parametrize(
    ("asked", "is_"), [("json", "json"), ("gunicorn", "gunicorn"), ("text", "gunicorn"), ("pretty", "pretty")]
)
def test_what_is_asked_for_counts_everywhere(asked: str, is_: str, configure: Configure, terminals: set[int]) -> None:
    for found in ((), (1, 2)):
        terminals.clear()
        terminals.update(found)
        config = configure(log_format=asked, accesslog="-")
        assert style.of_errors(config) == style.of_accesses(config) == is_


def test_the_format_of_access_lines_is_the_one_that_was_asked_for(configure: Configure, terminals: set[int]) -> None:
    terminals.add(1)
    assert style.access_format(configure(accesslog="-")) == style.SHORT_ACCESS
    assert style.access_format(configure(accesslog="-", access_log_format="%(h)s")) == "%(h)s"
    assert style.access_format(configure(accesslog="f")) == configure().access_log_format


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_follow_the_usual_variables(
    variables: dict[str, str], coloured: bool, terminals: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminals.add(2)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert style.has_colours(2) is coloured
    terminals.clear()
    assert style.has_colours(2) is (coloured and "FORCE_COLOR" in variables)


def test_lines_are_short(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    log = logs.make(configure(log_format="pretty"))
    log.info("Starting %s", "tricorn")
    log.warning("careful")
    try:
        raise ValueError("why")
    except ValueError:
        log.exception("It failed")
    first, second, third, *trace = capsys.readouterr().err.splitlines()
    matched = [LINE.fullmatch(line) for line in (first, second, third)]
    assert [match and match.groups() for match in matched] == [
        ("info", "Starting tricorn"),
        ("warning", "careful"),
        ("error", "It failed"),
    ]
    assert trace[0] == "Traceback (most recent call last):"
    assert trace[-1] == "ValueError: why"


def test_levels_have_colours(
    configure: Configure, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    log = logs.make(configure(log_format="pretty"))
    log.info("fine")
    log.error("bad")
    fine, bad = capsys.readouterr().err.splitlines()
    assert "\x1b[32minfo    \x1b[0m fine" in fine
    assert "\x1b[31merror   \x1b[0m bad" in bad


def test_the_pid_of_a_worker_that_has_trouble_is_there(
    configure: Configure, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logs.make(configure(log_format="pretty"))
    monkeypatch.setattr(os, "getpid", lambda: 4711)
    log.info("fine")
    log.error("bad")
    fine, bad = capsys.readouterr().err.splitlines()
    assert "4711" not in fine
    assert "[4711] bad" in bad


ROUTINE = (
    "Booting worker with pid: 1",
    "Worker exiting (pid: 1)",
    "Worker (pid:1) was sent SIGINT!",
    "Listening at: http://a:1 (1)",
)


def test_routine_is_left_out_unless_everything_is_asked_for(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, expected in (
        ({"log_format": "pretty"}, 0),
        ({"log_format": "pretty", "loglevel": "debug"}, 4),
        ({"log_format": "gunicorn"}, 4),
        ({"log_format": "json"}, 4),
    ):
        log = logs.make(configure(**options))
        for text in ROUTINE:
            log.info("%s", text)
        log.error("Worker (pid:1) was sent SIGKILL! Perhaps out of memory?")
        assert len(capsys.readouterr().err.splitlines()) == expected + 1, options


def test_a_class_with_a_format_of_its_own_keeps_it(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    class Mine(Logger):
        error_fmt = "mine %(message)s"

    logs.make(configure(log_format="pretty", logger_class=Mine)).info("hello")
    assert capsys.readouterr().err == "mine hello\n"


def test_access_lines_that_python_writes_are_painted_alike(
    configure: Configure, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    log = logs.make(configure(log_format="pretty", accesslog="-"))
    environ = {"REQUEST_METHOD": "GET", "RAW_URI": "/", "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "10.0.0.9"}
    response = SimpleNamespace(status="404 Not Found", sent=3, headers=[])
    log.access(response, SimpleNamespace(headers=[]), environ, timedelta(milliseconds=12))
    line = capsys.readouterr().out
    assert re.fullmatch(r'\x1b\[33m\d\d:\d\d:\d\d 404      10.0.0.9 "GET / HTTP/1.1" 3 bytes, 12 ms\x1b\[0m\n', line), (
        line
    )


def test_what_the_application_writes_stays_text(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    logs.make(configure(log_format="pretty")).write("raw\n")
    assert capsys.readouterr().err == "raw\n"
    assert logging.getLogger("gunicorn.error").handlers


HOSTILE = "\x1b]0;title\x07\x1b[2J \x9b31m \r overwritten \u202egnp.exe\u2066 \x7f\u2028"
SHOWN = r"\x1b]0;title\x07\x1b[2J \x9b31m \r overwritten \u202egnp.exe\u2066 \x7f\u2028"


@pytest.mark.parametrize("kind", ["gunicorn", "pretty", "json"])
def test_no_text_reaches_a_terminal_as_commands(
    kind: str, configure: Configure, capfd: pytest.CaptureFixture[str]
) -> None:
    log = logs.make(configure(log_format=kind, accesslog="-"))
    log.error("says: %s", HOSTILE)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        log.exception("an exception")
    log.access_log.info("%s\ttab", HOSTILE)
    said = capfd.readouterr()
    for text in (said.err, said.out):
        assert not re.search("[\x00-\x08\x0b-\x1f\x80-\x9f\u2028-\u202e\u2066-\u2069]", text), text
    if kind == "json":
        assert json.loads(said.err.splitlines()[0])["message"] == f"says: {HOSTILE}"
    else:
        assert f"says: {SHOWN}\n" in said.err
        assert f"ValueError: {SHOWN}\n" in said.err
        assert f"{SHOWN}\ttab\n" in said.out
