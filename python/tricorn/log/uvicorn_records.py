"""Access lines as uvicorn's records: five arguments that filters and formatters written for it take apart.

The recipe against health checks in the log looks at `record.args[2]`, or at `record.getMessage()`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tricorn.log.atoms import access_escape
from tricorn.log.formats import UvicornArgs

MESSAGE = '%s - "%s %s HTTP/%s" %d'


def write(logger: logging.Logger, environ: Mapping[str, Any], line: tuple[str, Mapping[str, Any]]) -> None:
    """Logs a request. `line` is what the server's own handlers write of it: a format, and its atoms."""
    if not logger.isEnabledFor(logging.INFO):
        return
    arguments = UvicornArgs.of((*_described(environ), _status(line[1].get("s"))), line)
    logger.handle(logger.makeRecord(logger.name, logging.INFO, "(unknown file)", 0, MESSAGE, arguments, None))


def _described(environ: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Client (`10.0.0.1:4711`), method, path with its query, version of HTTP (`1.1`)."""
    address, port = environ.get("REMOTE_ADDR") or "", environ.get("REMOTE_PORT")
    path = f"{environ.get('SCRIPT_NAME') or ''}{environ.get('PATH_INFO') or ''}"
    target = quote(path.encode("latin-1", "replace"))
    if query := environ.get("QUERY_STRING"):
        target += f"?{access_escape(query)}"
    version = str(environ.get("SERVER_PROTOCOL") or "").rpartition("/")[2]
    client = f"{address}:{port}" if address and port else str(address)
    return client, str(environ.get("REQUEST_METHOD") or ""), target, version


def _status(found: object) -> int:
    text = str(found)
    return int(text) if text.isdigit() else 0
