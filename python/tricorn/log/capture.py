"""`capture_output`: what the process prints goes into the error log."""

from __future__ import annotations

import atexit
import io
import logging
import sys
from contextlib import suppress
from typing import Any

from tricorn.errors import ConfigError
from tricorn.log import stream as streams
from tricorn.log.targets import STDERR, STDOUT
from tricorn.unpatched import os

_originals: dict[int, int] = {}
"""Copies of stdout and stderr as the process was given them, for the day capturing is switched off. Kept for good,
so that a reload that fails has nothing to undo here."""


def into_file(path: str, user: int, group: int) -> streams.LogStream:
    """Puts the file in the place of descriptors 1 and 2, for C code and programs of the application's as well."""
    flush()
    try:
        opened = streams.open_file(path)
    except OSError as error:
        raise ConfigError(f"The output cannot be captured (capture_output) into {path!r}: {error.strerror}.") from None
    streams.give_away(opened.fileno(), user, group)
    for number in (STDOUT, STDERR):
        if number not in _originals:
            with suppress(OSError):
                _originals[number] = os.dup(number)
        os.dup2(opened.fileno(), number)
    return opened


def into_records(log: logging.Logger) -> None:
    """For JSON logs: prints become records, so that every line of the log stays an object.

    What C code and programs of the application's write to the descriptors 1 and 2 stays where it was.
    """
    flush()
    atexit.unregister(_finish)
    atexit.register(_finish)
    sys.stdout = _text_stream(log, "stdout", logging.INFO, STDOUT)
    sys.stderr = _text_stream(log, "stderr", logging.ERROR, STDERR)


def stop() -> None:
    """Undoes either; nothing if nothing was captured."""
    if isinstance(getattr(sys.stdout, "buffer", None), _Buffer):
        flush()
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    if _originals:
        flush()
        for number, copy in _originals.items():
            os.dup2(copy, number)


def _finish() -> None:
    """At the end of the process: a line without an end is a line."""
    flush()
    for stream in (sys.stdout, sys.stderr):
        lines = getattr(getattr(stream, "buffer", None), "raw", None)
        if isinstance(lines, _Lines):
            lines.end()


def reopen(captured: streams.LogStream, path: str, user: int, group: int) -> None:
    """After a rotation. Raises OSError, and then the old file stays."""
    descriptor = streams.open_descriptor(path)
    streams.give_away(descriptor, user, group)
    flush()
    for number in (STDOUT, STDERR):
        os.dup2(descriptor, number)
    os.dup2(descriptor, captured.fileno(), inheritable=False)
    os.close(descriptor)


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


class _Lines(io.RawIOBase):
    """Bytes in, a record per line out."""

    def __init__(self, log: logging.Logger, name: str, level: int, number: int) -> None:
        self._log, self._name, self._level, self._number = log, name, level, number
        self._rest = b""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, data: Any) -> int:
        chunk = bytes(data)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._hand_over(line)
        return len(chunk)

    def end(self) -> None:
        line, self._rest = self._rest, b""
        if line:
            self._hand_over(line)

    def _hand_over(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        # Whatever the level of the log is: with `capture_output` the operator wants to see it.
        self._log.handle(logging.LogRecord(self._name, self._level, "", 0, text, None, None))


class _Buffer(io.BufferedWriter):
    """Tells a captured stream from others."""


def _text_stream(log: logging.Logger, name: str, level: int, number: int) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        _Buffer(_Lines(log, name, level, number)), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
