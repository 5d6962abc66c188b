"""A long response, and what became of it: `/report?tag=T&count=…&size=…&how=…` answers, `/report?seen=T` tells how many
pieces of T were produced, and how often its iterable was closed. With `drip` a byte follows each hundredth of a second,
without end."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from behaviours.query import parameters

produced: Counter[str] = Counter()
closed: Counter[str] = Counter()


def piece(number: int, size: int) -> bytes:
    """Unlike its neighbours, and unlike itself moved by less than 251 bytes."""
    return (bytes((number + step) % 251 for step in range(251)) * (size // 251 + 1))[:size]


class Pieces:
    """What the application returns, and the file that `wsgi.file_wrapper` reads."""

    def __init__(self, tag: str, count: int, size: int, *, drips: bool) -> None:
        self._tag, self._count, self._size, self._drips = tag, count, size, drips
        self._number = 0

    def __iter__(self) -> Pieces:
        return self

    def __next__(self) -> bytes:
        if self._number == self._count:
            if not self._drips:
                raise StopIteration
            time.sleep(0.01)
            return b"."
        made = piece(self._number, self._size)
        self._number += 1
        produced[self._tag] += 1
        return made

    def read(self, _size: int = -1) -> bytes:
        return next(self, b"")

    def close(self) -> None:
        closed[self._tag] += 1


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = parameters(environ)
    if "seen" in given:
        text = json.dumps({"produced": produced[given["seen"]], "closed": closed[given["seen"]]}).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
        return [text]
    tag, count, size, how = given["tag"], int(given["count"]), int(given["size"]), given.get("how", "generator")
    fields = [("Content-Type", "application/octet-stream")]
    if "length" in given:
        fields.append(("Content-Length", str(count * size)))
    write = start_response("200 OK", fields)
    pieces = Pieces(tag, count, size, drips="drip" in given)
    if how == "file":
        wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](pieces, size)
        return wrapped
    if how == "write":
        for made in pieces:
            write(made)
        pieces.close()
        return []
    return pieces
