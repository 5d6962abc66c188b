"""One JSON object per line (RFC 8259). Those of the error log are ASCII, so that no collector stumbles over a byte."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from tricorn.log.atoms import access_object, request_id
from tricorn.log.formats import as_gunicorns, with_message

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes every record has; others were given by the caller (`extra=`) and become keys."""

RESERVED = frozenset({"time", "level", "pid", "logger", "message", "exception", "stack"})


class JsonFormatter(logging.Formatter):
    """time (ISO 8601, milliseconds, offset), level, pid, logger, message; exception and stack if there is one.

    A record that is logged while a request is handled has its `request_id`, with the setting of that name.
    """

    def format(self, record: logging.LogRecord) -> str:
        with_message(record)
        zone = time.strftime("%z", time.localtime(record.created))
        line: dict[str, Any] = {
            "time": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03}{zone[:3]}:{zone[3:5]}",
            "level": record.levelname,
            "pid": record.process,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (handled := request_id()) is not None:
            line["request_id"] = handled
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["exception"] = record.exc_text
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        for name, value in vars(record).items():
            if name not in STANDARD:
                line[f"{name}_" if name in RESERVED else name] = value
        return _encode(line)


class JsonAccessFormatter(JsonFormatter):
    """The object that the core writes, for lines that go through Python."""

    as_the_core = True

    def format(self, record: logging.LogRecord) -> str:
        record = as_gunicorns(record)
        if isinstance(record.args, dict) and "m" in record.args:
            time_of = self.formatTime(record, "[%d/%b/%Y:%H:%M:%S %z]")
            return access_object(record.args, time_of, int(record.msecs))
        return super().format(record)  # no record of the access log


def _encode(line: dict[str, Any]) -> str:
    """Whatever it holds: what JSON does not know, infinities and circles too, becomes its text."""
    try:
        return json.dumps(line, default=_text, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        known = (str, int, type(None))
        return json.dumps({name: value if isinstance(value, known) else _text(value) for name, value in line.items()})


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__} in str()>"
