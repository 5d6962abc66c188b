"""A generator of `count` pieces of `size` bytes; with `length` it says so beforehand, and with `rest` it ends later."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from behaviours.query import parameters


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = parameters(environ)
    count, size, pause, rest = (
        int(given.get("count", "3")),
        int(given.get("size", "10")),
        float(given.get("pause", "0")),
        float(given.get("rest", "0")),
    )
    fields = [("Content-Type", "application/octet-stream")]
    if "length" in given:
        fields.append(("Content-Length", str(count * size)))
    start_response("200 OK", fields)

    def generate() -> Iterator[bytes]:
        for number in range(count):
            if pause and number:
                time.sleep(pause)
            yield bytes([97 + number % 26]) * size
        if rest:
            time.sleep(rest)

    return generate()
