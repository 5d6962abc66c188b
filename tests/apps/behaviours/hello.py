"""The least an application can do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "6")])
    return [b"Hello\n"]
