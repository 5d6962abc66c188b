"""Reads the request body in the way `how` names and tells what it got, exact to the byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from behaviours.query import parameters


def until_empty(read: Callable[[], bytes]) -> Iterator[bytes]:
    return iter(read, b"")


def pieces(source: Any, how: str, size: int) -> list[bytes]:
    ways: dict[str, Callable[[], Iterable[bytes]]] = {
        "read": lambda: [source.read()],
        "read_minus_one": lambda: [source.read(-1)],
        "read_none": lambda: [source.read(None)],
        "read_n": lambda: until_empty(lambda: source.read(size)),
        "read_zero": lambda: [source.read(0), source.read(size)],
        "readline": lambda: until_empty(source.readline),
        "readline_n": lambda: until_empty(lambda: source.readline(size)),
        "readlines": source.readlines,
        "readlines_hint": lambda: source.readlines(size),
        "iterate": lambda: source,
        "mixed": lambda: [source.readline(), source.read(3), source.readline(2), *source],
        "nothing": list,
        "past_end": lambda: [
            *until_empty(lambda: source.read(size)),
            source.read(1),
            source.read(size),
            source.readline(),
        ],
    }
    return list(ways[how]())


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    import hashlib

    given = parameters(environ)
    got = pieces(environ["wsgi.input"], given.get("how", "read_n"), int(given.get("size", "65536")))
    whole = b"".join(got)
    answer = {
        "length": len(whole),
        "sha256": hashlib.sha256(whole).hexdigest(),
        "sizes": [len(piece) for piece in got[:2000]],
        "types": sorted({type(piece).__name__ for piece in got}),
    }
    body = json.dumps(answer).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
