"""`wsgi.errors`: text in the error log that is no record, unless the log is made of records."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

from tricorn.log.formats import Plain
from tricorn.log.targets import Quiet, below_warning

NAME = "wsgi.errors"
LONGEST = 65_536
"""Characters of an unfinished line that are kept; then it is a record."""

_unfinished = threading.local()


def write(log: logging.Logger, text: str) -> None:
    """To every handler of `log` with a stream, and to stderr if there is none. Never raises."""
    readers = [handler for handler in log.handlers if getattr(handler, "stream", None) is not None]
    takers = [handler for handler in readers if _takes_records(handler)]
    if takers:
        _make_records(takers, text)
    for handler in readers:
        # Of `split` streams only the one for bad news: its twin leads to another place, but is no other log.
        if handler not in takers and below_warning not in handler.filters:
            _write_text(handler, handler.stream, text)  # type: ignore[attr-defined]
    if not readers and sys.stderr is not None:
        _write_text(None, sys.stderr, text)


def settle_after_patching() -> None:
    """Unfinished lines are a greenlet's from now on."""
    global _unfinished
    _unfinished = threading.local()


def flush(log: logging.Logger) -> None:
    """Makes a record of what this thread has begun."""
    rest = getattr(_unfinished, "text", "")
    if rest:
        _unfinished.text = ""
        _hand_over(list(filter(_takes_records, log.handlers)), rest)


def _takes_records(handler: logging.Handler) -> bool:
    """Whether lines that do not come from its formatter would break what reads the log: JSON, for one."""
    return handler.formatter is not None and type(handler.formatter) not in (logging.Formatter, Plain)


def _make_records(takers: list[logging.Handler], text: str) -> None:
    """One for each write, as far as its lines are complete: a traceback written at once stays in one piece."""
    whole, newline, rest = (getattr(_unfinished, "text", "") + text).rpartition("\n")
    if len(rest) > LONGEST:
        whole, newline, rest = whole + newline + rest, "\n", ""
    _unfinished.text = rest
    if newline and whole.strip():
        _hand_over(takers, whole)


def _hand_over(takers: list[logging.Handler], text: str) -> None:
    made = logging.LogRecord(NAME, logging.ERROR, "", 0, text, None, None)
    for handler in takers:
        if made.levelno >= handler.level:
            handler.handle(made)


def _write_text(handler: logging.Handler | None, stream: Any, text: str) -> None:
    if handler is not None:
        handler.acquire()
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError) as error:
        # A dead pipe, a full disk, a closed stream: the application is not to blame.
        if isinstance(handler, Quiet):
            handler.lost.note(error)
    finally:
        if handler is not None:
            handler.release()
