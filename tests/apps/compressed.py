"""Responses as a test describes them: `?do=` is JSON, with `status`, `fields`, and `pieces` of the body.

A piece is a text and how often it is repeated. `length` announces so many bytes; `whole` gives the body at once. With
a `gate`, the application waits behind its nth piece for the file of this name with n behind it, which the test makes.
`fails`: it raises an exception at its end.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

PAUSE = 0.01


class Play:
    def __init__(self, query: str) -> None:
        told: dict[str, Any] = json.loads(parse_qs(query)["do"][0])
        self.status: int = told.get("status", 200)
        self.pieces = [(text * count).encode() for text, count in told.get("pieces", [])]
        self.fields = [(name, value) for name, value in told.get("fields", [("Content-Type", "text/plain")])]
        if "length" in told:
            self.fields.append(("Content-Length", str(told["length"])))
        self.is_whole: bool = told.get("whole", False)
        self.fails: bool = told.get("fails", False)
        self._gate: str | None = told.get("gate")

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def is_open(self, number: int) -> bool:
        """Whether the application may go on behind this piece."""
        return self._gate is None or os.path.exists(f"{self._gate}{number}")


class Failed(Exception):
    """The test asked for it: crash marker."""


def application(environ: dict[str, Any], start_response: Any) -> Any:
    play = Play(environ["QUERY_STRING"])
    start_response(f"{play.status} Status", play.fields)
    return [play.body] if play.is_whole else pieces(play)


def pieces(play: Play) -> Iterator[bytes]:
    for number, piece in enumerate(play.pieces):
        yield piece
        while not play.is_open(number):
            time.sleep(PAUSE)
    if play.fails:
        raise Failed
