"""From a record to a line of text. JSON lines are made in `json_lines`, which is imported only for them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Controls of terminals (C0 and C1, but for tabs and line ends), Unicode's line ends, and changes of direction."""


def harmless(text: str) -> str:
    """Escapes what a terminal would obey: an exception or a worker may tell what a client has sent."""
    return UNSAFE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


class Plain(logging.Formatter):
    """gunicorn's line. A message that does not fit its arguments is written as far as it goes."""

    def format(self, record: logging.LogRecord) -> str:
        with_message(record)
        return harmless(super().format(record))


class UvicornArgs(tuple[Any, ...]):
    """The arguments of an access line in uvicorn's order, with the line that the server's own formatters write."""

    line: tuple[str, Mapping[str, Any]]

    @classmethod
    def of(cls, arguments: tuple[Any, ...], line: tuple[str, Mapping[str, Any]]) -> UvicornArgs:
        made = cls(arguments)
        made.line = line
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """A record that is pickled, for a queue say, takes no header fields along."""
        return tuple, (tuple(self),)


class AccessLine(logging.Formatter):
    """The line of the access log: the message and nothing else."""

    as_the_core = True
    """The core would have written the same."""

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(as_gunicorns(record)))


def as_gunicorns(record: logging.LogRecord) -> logging.LogRecord:
    """A record of the access log with gunicorn's arguments, the atoms."""
    if not isinstance(record.args, UvicornArgs):
        return record
    made = logging.makeLogRecord(vars(record))
    made.msg, made.args = record.args.line
    return made


def with_message(record: logging.LogRecord) -> None:
    """Replaces arguments that the message cannot be formatted with by what went wrong, once and for all handlers."""
    try:
        record.getMessage()
    except Exception as error:
        record.msg = f"{record.msg} {record.args!r} (cannot be formatted: {type(error).__name__}: {error})"
        record.args = None
