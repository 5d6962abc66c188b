"""The environ as JSON: name -> [type, value]."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def describe(value: Any) -> list[Any]:
    plain = value if isinstance(value, (str, int, bool)) else repr(value)
    return [type(value).__name__, list(value) if isinstance(value, tuple) else plain]


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    body = json.dumps({key: describe(value) for key, value in environ.items()}).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
