"""uvicorn's formatters as served where it is not installed. What they write was seen with uvicorn 0.54.0."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest
from tricorn import compat

pytestmark = pytest.mark.beyond_reference("they are another server's")


@pytest.fixture(autouse=True)
def _served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    compat.install()


def record(level: int, message: str, *arguments: Any, **more: Any) -> logging.LogRecord:
    made = logging.LogRecord("uvicorn", level, "", 0, message, arguments, None)
    vars(made).update(more)
    return made


ACCESS = ("127.0.0.1:5", "GET", "/a?b", "1.1")


def test_the_error_log() -> None:
    from uvicorn.logging import ColourizedFormatter, DefaultFormatter

    plain = DefaultFormatter("%(levelprefix)s %(message)s", use_colors=False)
    assert plain.format(record(logging.INFO, "a %s", "b", color_message="c %s")) == "INFO:     a b"
    assert plain.format(record(logging.WARNING, "a")) == "WARNING:  a"
    assert plain.format(record(logging.CRITICAL, "a")) == "CRITICAL: a"
    painted = ColourizedFormatter("{levelprefix} {message}", style="{", use_colors=True)
    assert painted.format(record(logging.INFO, "a %s", "b", color_message="c %s")) == "\x1b[32mINFO\x1b[0m:     c b"
    assert painted.format(record(logging.CRITICAL, "a")) == "\x1b[91mCRITICAL\x1b[0m: a"
    assert painted.format(record(35, "a")) == "Level 35: a"


def test_the_access_log() -> None:
    from uvicorn.logging import AccessFormatter

    text = '%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s'
    plain, painted = AccessFormatter(text, use_colors=False), AccessFormatter(text, use_colors=True)
    given = record(logging.INFO, '%s - "%s %s HTTP/%s" %d', *ACCESS, 404)
    assert plain.format(given) == 'INFO:     127.0.0.1:5 - "GET /a?b HTTP/1.1" 404 Not Found'
    assert (
        painted.format(given)
        == '\x1b[32mINFO\x1b[0m:     127.0.0.1:5 - "\x1b[1mGET /a?b HTTP/1.1\x1b[0m" \x1b[31m404 Not Found\x1b[0m'
    )
    assert plain.format(record(logging.INFO, "%s %s %s %s %d", *ACCESS, 799)).endswith('" 799 ')
    assert given.args == (*ACCESS, 404)
    assert "client_addr" not in vars(given)


def test_the_log_configuration_that_programs_change() -> None:
    from uvicorn.config import LOG_LEVELS, LOGGING_CONFIG

    assert set(LOGGING_CONFIG["loggers"]) == {"uvicorn", "uvicorn.error", "uvicorn.access"}
    assert LOG_LEVELS["trace"] == 5
