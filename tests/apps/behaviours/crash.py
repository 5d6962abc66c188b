"""Exceptions at every stage of a response, by `when`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from behaviours.query import parameters

BREAKS_RULES = True
PLAIN = ("Content-Type", "text/plain")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this works")


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    when = parameters(environ)["when"]
    if when == "call":
        raise RuntimeError("crash marker: call")
    if when == "unprintable":
        raise Unprintable
    if when == "exit":
        sys.exit("crash marker: exit")
    start_response("200 OK", [PLAIN])
    if when == "started":
        raise RuntimeError("crash marker: started")

    def generate() -> Iterator[bytes]:
        if when == "first":
            raise RuntimeError("crash marker: first")
        yield b"begun"
        raise RuntimeError("crash marker: later")

    return generate()
