"""A body that is not as long as its Content-Length (`says`) claims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from behaviours.query import parameters


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = parameters(environ)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", given["says"])])
    body = b"x" * int(given["sends"])
    return iter([body[:3], body[3:]]) if "pieces" in given else [body]
