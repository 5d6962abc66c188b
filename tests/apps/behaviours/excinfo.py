"""start_response with exc_info: before the head is out it replaces the response, after that it raises."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from behaviours.query import parameters

PLAIN = ("Content-Type", "text/plain")


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    when = parameters(environ)["when"]
    start_response("200 OK", [PLAIN, ("X-First", "yes")])
    if when == "before":
        try:
            raise ValueError("on the way")
        except ValueError:
            start_response("503 Later", [PLAIN, ("X-Second", "yes")], sys.exc_info())
        return [b"replaced"]

    def generate() -> Iterator[bytes]:
        yield b"begun"
        try:
            raise KeyError("too late")
        except KeyError:
            start_response("500 Too Late", [PLAIN], sys.exc_info())
        yield b"never"

    return generate()
