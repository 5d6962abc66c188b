"""Response bodies that hold something else than bytes, by `kind`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from behaviours.query import parameters

BREAKS_RULES = True


def late() -> Iterator[Any]:
    yield b"begun"
    yield "text"


KINDS: dict[str, Callable[[], Any]] = {
    "str_list": lambda: ["text"],
    "str_generator": lambda: (piece for piece in ["text"]),
    "str": lambda: "text",
    "int": lambda: [1],
    "none_piece": lambda: [None],
    "none": lambda: None,
    "number": lambda: 5,
    "late": late,
}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return KINDS[parameters(environ)["kind"]]()
