"""`capture_output`: what the process prints goes into the error log."""

from __future__ import annotations

import atexit
import io
import logging
import sys
from contextlib import suppress
from functools import partial
from typing import Any

from tricorn.log import raw_text
from tricorn.log.stream import LogStream, Ownership, open_file
from tricorn.log.targets import STDERR, STDOUT
from tricorn.unpatched import os

_originals: dict[int, int] = {}
"""Copies of stdout and stderr as the process was given them, for the day capturing is switched off. Kept for good,
so that a reload that fails has nothing to undo here."""
_replaced: list[Any] = []
"""`sys.stdout` and `sys.stderr` of before they became records."""


def into_file(path: str, wanted: Ownership) -> LogStream:
    """Puts the file in the place of descriptors 1 and 2, for C code and programs of the application's as well.

    Raises OSError, and then they stay what they are.
    """
    opened = open_file(path, wanted)
    _flush()
    for number in (STDOUT, STDERR):
        if number not in _originals:
            with suppress(OSError):  # closed
                _originals[number] = os.dup(number)
        os.dup2(opened.fileno(), number)
    return opened


def into_records(log: logging.Logger) -> None:
    """Makes prints records of a JSON log, so that every line of the log stays an object.

    What C code and programs of the application's write to the descriptors 1 and 2 stays where it was.
    """
    _flush()
    atexit.unregister(_finish)
    atexit.register(_finish)
    _replaced[:] = sys.stdout, sys.stderr
    sys.stdout = _text_stream(log, "stdout", logging.INFO, STDOUT)
    sys.stderr = _text_stream(log, "stderr", logging.ERROR, STDERR)


def stop() -> None:
    """Undoes either; nothing if nothing was captured."""
    _flush()
    if _prints():
        sys.stdout, sys.stderr = _replaced
    for number, copy in _originals.items():
        os.dup2(copy, number)


def _finish() -> None:
    """At the end of the process: a line without an end is a line."""
    _flush()
    for prints in _prints():
        prints.end()


def _prints() -> list[_Prints]:
    raw = [getattr(getattr(stream, "buffer", None), "raw", None) for stream in (sys.stdout, sys.stderr)]
    return [each for each in raw if isinstance(each, _Prints)]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


class _Prints(io.RawIOBase):
    """Bytes in, records out."""

    def __init__(self, log: logging.Logger, name: str, level: int, number: int) -> None:
        self._record = partial(raw_text.record, log, name, level)
        self._number, self._unfinished = number, raw_text.Unfinished()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, data: Any) -> int:
        self._record(self._unfinished.complete(bytes(data).decode("utf-8", "replace")))
        return len(data)

    def end(self) -> None:
        self._record(self._unfinished.take())


def _text_stream(log: logging.Logger, name: str, level: int, number: int) -> io.TextIOWrapper:
    buffer = io.BufferedWriter(_Prints(log, name, level, number))
    return io.TextIOWrapper(buffer, encoding="utf-8", errors="backslashreplace", line_buffering=True)
