"""One JSON object per line (RFC 8259), ASCII only, so that no collector can stumble over a byte."""

from __future__ import annotations

import json
import logging
import os
import time
from typing import Any

from tricorn.log.formats import atoms_of, with_message

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes every record has; others were given by the caller (`extra=`) and become keys."""

RESERVED = frozenset({"time", "level", "pid", "logger", "message", "exception", "stack"})


class JsonFormatter(logging.Formatter):
    """time (ISO 8601, milliseconds, offset), level, pid, logger, message; exception and stack if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        with_message(record)
        line: dict[str, Any] = {
            "time": timestamp(record.created),
            "level": record.levelname,
            "pid": record.process,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["exception"] = record.exc_text
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        for name, value in vars(record).items():
            if name not in STANDARD:
                line[f"{name}_" if name in RESERVED else name] = value
        return encode(line)


class JsonAccessFormatter(logging.Formatter):
    """The object the native core writes, for lines that go through Python."""

    as_the_core = True

    def format(self, record: logging.LogRecord) -> str:
        atoms = atoms_of(record)
        if "m" not in atoms:  # somebody else's record
            return encode({"time": timestamp(record.created), "pid": record.process, "message": record.getMessage()})
        line: dict[str, Any] = {
            "time": timestamp(record.created, precise=False),
            "remote": _known(atoms, "h"),
            "method": _known(atoms, "m"),
            "path": _path(atoms),
            "query": _text_of(atoms["q"]) if atoms["q"] != "-" else "",
            "protocol": _known(atoms, "H"),
            "status": _number(atoms["s"]),
            "bytes": atoms["B"],
            "duration_us": atoms["D"],
            "queue_us": _queue(atoms),
            "referer": _known(atoms, "{referer}i"),
            "user_agent": _known(atoms, "{user-agent}i"),
            "host": _known(atoms, "{host}i"),
        }
        if "{tricorn.request_id}e" in atoms:
            line["request_id"] = _known(atoms, "{tricorn.request_id}e")
        line["pid"] = os.getpid()
        return encode(line)


def _known(atoms: Any, name: str) -> object:
    value = atoms[name]
    return None if value in ("-", "", None) else _text_of(value)


def _path(atoms: Any) -> object:
    """As the client sent it, like the core; not decoded."""
    target = atoms["{raw_uri}e"]
    return None if target == "-" else _text_of(target.partition("?")[0])


def _text_of(value: object) -> object:
    """WSGI's strings are bytes in disguise (PEP 3333); what they mean is UTF-8, or else nobody knows."""
    if not isinstance(value, str) or value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return value


def _number(status: object) -> object:
    return int(status) if isinstance(status, str) and status.isdigit() else status


def _queue(atoms: Any) -> int | None:
    value = atoms["{tricorn.queue_time}e"]
    return round(value * 1_000_000) if isinstance(value, float) else None


def timestamp(seconds: float, *, precise: bool = True) -> str:
    """`2026-11-21T01:02:32.123+00:00`"""
    local = time.localtime(seconds)
    sign, offset = ("-", -local.tm_gmtoff) if local.tm_gmtoff < 0 else ("+", local.tm_gmtoff)
    fraction = f".{int(seconds * 1000) % 1000:03}" if precise else ""
    zone = f"{sign}{offset // 3600:02}:{offset // 60 % 60:02}"
    return time.strftime("%Y-%m-%dT%H:%M:%S", local) + fraction + zone


def encode(line: dict[str, Any]) -> str:
    """Whatever it holds: what JSON does not know, infinities and circles too, becomes its text."""
    try:
        return _json(line)
    except (ValueError, TypeError, RecursionError):
        return _json({str(name): _or_text(value) for name, value in line.items()})


def _or_text(value: object) -> object:
    try:
        _json(value)
    except (ValueError, TypeError, RecursionError):
        return _text(value)
    return value


def _json(value: object) -> str:
    return json.dumps(value, default=_text, allow_nan=False)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__} in str()>"
