"""From a record to a line of text. JSON lines are made in `json_lines`, which is imported only for them."""

from __future__ import annotations

import logging


class Plain(logging.Formatter):
    """gunicorn's line. A message that does not fit its arguments is written as far as it goes."""

    def format(self, record: logging.LogRecord) -> str:
        with_message(record)
        return super().format(record)


class AccessLine(logging.Formatter):
    """The line of the access log: the message and nothing else."""

    as_the_core = True
    """The core would have written the same."""


def with_message(record: logging.LogRecord) -> None:
    """Replaces arguments that the message cannot be formatted with by what went wrong, once and for all handlers."""
    try:
        record.getMessage()
    except Exception as error:
        record.msg = f"{record.msg} {record.args!r} (cannot be formatted: {type(error).__name__}: {error})"
        record.args = None
