"""What is measured: an application whose requests sleep."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

running = 0


def sleep(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """`/?SECONDS` sleeps as any program does, with `time.sleep`; says how many slept at once when it began."""
    global running
    running += 1
    try:
        begun = running
        if environ["QUERY_STRING"]:
            time.sleep(float(environ["QUERY_STRING"]))
    finally:
        running -= 1
    body = str(begun).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
