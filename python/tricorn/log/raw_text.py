"""Text in the error log that is no record, unless the log is made of records: `wsgi.errors`, and captured output."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import nullcontext
from typing import Any

from tricorn.log.formats import Plain
from tricorn.log.style import Pretty
from tricorn.log.targets import Quiet, below_warning, reached

LONGEST = 65_536
"""Characters of an unfinished line that are kept; then it is a record."""


class Unfinished:
    """The text that each thread has written since the end of its last line."""

    def __init__(self) -> None:
        self._thread = threading.local()

    def complete(self, text: str) -> str:
        """The complete lines with `text` added, in one piece: a traceback written at once stays so."""
        whole, newline, rest = (self.take() + text).rpartition("\n")
        if len(rest) > LONGEST:
            return whole + newline + rest
        self._thread.text = rest
        return whole

    def take(self) -> str:
        text: str = getattr(self._thread, "text", "")
        self._thread.text = ""
        return text


_unfinished = Unfinished()


def write(log: logging.Logger, text: str) -> None:
    """Writes to every handler of `log` with a stream, and to stderr if there is none. Never raises."""
    if _takes_records(log):
        record(log, "wsgi.errors", logging.ERROR, _unfinished.complete(text))
        return
    readers = [handler for handler in reached(log) if getattr(handler, "stream", None) is not None]
    for handler in readers:
        # Of `split` streams only the one for bad news: its twin leads to another place, but is no other log.
        if below_warning not in handler.filters:
            _write_text(handler, handler.stream, text)  # type: ignore[attr-defined]
    if not readers and sys.stderr is not None:
        _write_text(None, sys.stderr, text)


def flush(log: logging.Logger) -> None:
    """Makes a record of what this thread has begun."""
    record(log, "wsgi.errors", logging.ERROR, _unfinished.take())


def settle_after_patching() -> None:
    """Unfinished lines are a greenlet's from now on."""
    global _unfinished
    _unfinished = Unfinished()


def record(log: logging.Logger, name: str, level: int, text: str) -> None:
    """Text that is not blank becomes a record, whatever the level of the log is."""
    if text.strip():
        log.handle(logging.LogRecord(name, level, "", 0, text, None, None))


def _takes_records(log: logging.Logger) -> bool:
    """Whether lines that come from no formatter would break what reads the log: JSON, for one."""
    formatters = [handler.formatter for handler in reached(log)]
    return not all(type(each) in (logging.Formatter, Plain, Pretty, type(None)) for each in formatters)


def _write_text(handler: logging.Handler | None, stream: Any, text: str) -> None:
    with (handler and handler.lock) or nullcontext():
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError) as error:
            # A dead pipe, a full disk, a closed stream: the application is not to blame.
            if isinstance(handler, Quiet):
                handler.count(error)
