"""What is compressed: records in JSON, sent as they are, or compressed by the application itself."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from typing import Any

from benches.files.content import JSON


def wsgi(environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], Any]) -> Iterable[bytes]:
    """`/by-itself` is compressed here, as frameworks do it."""
    body, coding = JSON, []
    if environ["PATH_INFO"] == "/by-itself":
        body, coding = gzip.compress(JSON, LEVEL, mtime=0), [("Content-Encoding", "gzip")]
    length = ("Content-Length", str(len(body)))
    start_response("200 OK", [("Content-Type", "application/json"), length, *coding])
    return [body]


LEVEL = 6
"""Of Django's GZipMiddleware."""
