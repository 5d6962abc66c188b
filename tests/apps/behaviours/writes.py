"""The write() callable: `count` writes of `size` bytes, then an iterable of one piece."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from behaviours.query import parameters


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = parameters(environ)
    count, size = int(given.get("count", "2")), int(given.get("size", "5"))
    tail = b"tail"
    fields = [("Content-Type", "text/plain")]
    if "length" in given:
        fields.append(("Content-Length", str(count * size + len(tail))))
    write = start_response("200 OK", fields)
    for number in range(count):
        write(bytes([97 + number % 26]) * size)
    if "empty" in given:
        write(b"")
    if given.get("bad") == "str":
        write("text")
    return [] if "alone" in given else [tail]
