"""From a record to a line of text. JSON lines are made in `json_lines`, which is imported only for them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tricorn.config.config import Config


class Plain(logging.Formatter):
    """gunicorn's line. A message that does not fit its arguments is written as far as it goes."""

    def format(self, record: logging.LogRecord) -> str:
        with_message(record)
        return super().format(record)


class AccessLine(logging.Formatter):
    """The line of the access log: the message and nothing else."""


def with_message(record: logging.LogRecord) -> None:
    """Replaces arguments that the message cannot be formatted with by what went wrong, once and for all handlers."""
    try:
        record.getMessage()
    except Exception as error:
        record.msg = f"{record.msg} {record.args!r} (cannot be formatted: {type(error).__name__}: {error})"
        record.args = None


def for_errors(config: Config, text: str, dates: str) -> logging.Formatter:
    if config.log_format == "json":
        from tricorn.log.json_lines import JsonFormatter

        return JsonFormatter()
    return Plain(text, dates)


def for_accesses(config: Config, text: str) -> logging.Formatter:
    if config.log_format == "json":
        from tricorn.log.json_lines import JsonAccessFormatter

        return JsonAccessFormatter()
    return AccessLine(text)


def is_default_access(formatter: logging.Formatter | None, text: str) -> bool:
    """Whether the core's lines are what `formatter` would have written."""
    if type(formatter) is AccessLine:
        return text == "%(message)s"
    return bool(getattr(formatter, "as_the_core", False))


def atoms_of(record: logging.LogRecord) -> Mapping[str, Any]:
    """The atoms an access record was made with; empty for other records."""
    return record.args if isinstance(record.args, Mapping) else {}
