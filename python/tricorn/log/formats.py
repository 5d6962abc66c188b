"""From a record to a line of text. JSON lines are made in `json_lines`, which is imported only for them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any


class Plain(logging.Formatter):
    """gunicorn's line. A message that does not fit its arguments is written as far as it goes."""

    def format(self, record: logging.LogRecord) -> str:
        with_message(record)
        return super().format(record)


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
        return super().format(as_gunicorns(record))


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
