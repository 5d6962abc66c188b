"""One bytes object of `size` bytes as the whole response."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from behaviours.query import parameters


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    body = b"b" * int(parameters(environ)["size"])
    start_response("200 OK", [("Content-Type", "application/octet-stream"), ("Content-Length", str(len(body)))])
    return [body]
