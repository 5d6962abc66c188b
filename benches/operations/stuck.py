"""`/c` keeps the GIL in C for a minute; everything else says hello."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

_c = ctypes.PyDLL(None)


def app(environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], Any]) -> Iterable[bytes]:
    if environ["PATH_INFO"] == "/c":
        _c.usleep(60_000_000)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "13")])
    return [b"Hello, World!"]
