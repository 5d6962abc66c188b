"""Response bodies of every kind an iterable can be, by `kind`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from behaviours.query import parameters


class Custom:
    """An iterable that is nothing else: no length, no index."""

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"one", b"two", b"three"])


class Sized(Custom):
    def __len__(self) -> int:
        return 3


class Lying(Custom):
    """Says it has one piece: the length of the body must not be guessed from it."""

    def __len__(self) -> int:
        return 1


class Old:
    """The iteration protocol from before iterators."""

    def __getitem__(self, index: int) -> bytes:
        return [b"one", b"two", b"three"][index]


class Subclass(bytes):
    pass


KINDS: dict[str, Callable[[], Any]] = {
    "list": lambda: [b"one", b"two", b"three"],
    "tuple": lambda: (b"one", b"two", b"three"),
    "single": lambda: [b"onetwothree"],
    "generator": lambda: (piece for piece in [b"one", b"two", b"three"]),
    "iterator": lambda: iter([b"one", b"two", b"three"]),
    "custom": Custom,
    "sized": Sized,
    "lying": Lying,
    "old": Old,
    "set": lambda: {b"onetwothree"},
    "dict": lambda: {b"onetwothree": 1},
    "bytes_subclass": lambda: [Subclass(b"one"), Subclass(b"twothree")],
    "empty_pieces": lambda: [b"", b"one", b"", b"", b"two", b"three", b""],
    "empty_first": lambda: (piece for piece in [b"", b"onetwothree"]),
    "empty_list": list,
    "empty_tuple": lambda: (),
    "empty_generator": lambda: (piece for piece in []),
    "only_empty": lambda: [b"", b""],
    "bytes": lambda: b"onetwothree",
    "many": lambda: [b"x"] * 3000,
}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return KINDS[parameters(environ)["kind"]]()
