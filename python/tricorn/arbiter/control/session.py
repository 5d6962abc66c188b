"""Framing of the control protocol (sans-IO): JSON lines, or gunicornc's frames. Bytes in, requests out, and back.

    first byte {    a line of JSON for each request, and for each answer: {"id": 1, "do": "scale", "workers": 6}
    first byte 0    gunicorn's frame: four bytes of length, and JSON: {"id": 1, "command": "show workers"}

Rule: a request is at most `MOST_REQUEST` bytes long, so that the first byte of gunicorn's length is 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from tricorn.record import Record

MOST_REQUEST = 64 << 10
MOST_VALUES = 500
"""Values in a request: decoding tens of thousands takes milliseconds, in which the arbiter does nothing else."""
MOST_NAME = 128
"""Bytes of a request's id: it is sent back."""

Id = int | str | None
Json = dict[str, object]


def unchanged(answer: Json) -> Json:
    return answer


class Request(Record):
    id: Id
    word: str
    arguments: Mapping[str, object]
    translate: Callable[[Json], Json] = unchanged
    """Makes the answer that the client understands (`gunicorn`)."""


class Frame(Record):
    """A request of gunicornc, which `gunicorn` translates."""

    id: Id
    command: str
    args: list[object]


class Answered(Record):
    """A request that needs nothing of the server."""

    id: Id
    answer: Json


class Broken(Record):
    """Bytes that are no request; and where the next one would begin is not known."""

    sentence: str


class Session:
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        """Up to here there is no end of a line."""
        self._frames: bool | None = None
        """gunicorn's framing; None before the first byte."""

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next(self) -> Request | Frame | Broken | None:
        """Returns None if there is no whole request yet."""
        if self._frames is None:
            if not self._buffer:
                return None
            if self._buffer[0] not in b"{\0":
                return Broken("expected a line of JSON, or a frame of gunicorn's")
            self._frames = self._buffer[0] == 0
        return self._next_frame() if self._frames else self._next_line()

    def encode(self, answer: Mapping[str, object]) -> bytes:
        text = json.dumps(answer, separators=(",", ":"), default=str).encode()
        return len(text).to_bytes(4, "big") + text if self._frames else text + b"\n"

    def _next_line(self) -> Request | Broken | None:
        end = self._buffer.find(b"\n", self._searched)
        if end < 0 and len(self._buffer) <= MOST_REQUEST:
            self._searched = len(self._buffer)
            return None
        if end < 0 or end > MOST_REQUEST:
            return Broken(f"expected a line of at most {MOST_REQUEST} bytes")
        line = bytes(self._buffer[:end])
        self._drop(end + 1)
        found = _object(line)
        word = None if found is None else found.get("do")
        if found is None or not isinstance(word, str):
            return Broken('expected an object such as {"id": 1, "do": "status"}')
        arguments = {key: value for key, value in found.items() if key not in ("id", "do")}
        return Request(_id(found), word, arguments)

    def _next_frame(self) -> Frame | Broken | None:
        if len(self._buffer) < 4:
            return None
        length = int.from_bytes(self._buffer[:4], "big")
        if length > MOST_REQUEST:
            return Broken(f"expected a frame of at most {MOST_REQUEST} bytes, not {length}")
        if len(self._buffer) < 4 + length:
            return None
        found = _object(bytes(self._buffer[4 : 4 + length]))
        self._drop(4 + length)
        command = None if found is None else found.get("command", "")
        if found is None or not isinstance(command, str):
            return Broken('expected an object such as {"id": 1, "command": "show workers"}')
        args = found.get("args")
        return Frame(_id(found), command, args if isinstance(args, list) else [])

    def _drop(self, count: int) -> None:
        del self._buffer[:count]
        self._searched = 0


def _object(text: bytes) -> dict[str, object] | None:
    if sum(map(text.count, (b",", b"[", b"{"))) > MOST_VALUES:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # the decoder descends into what is nested
        return None
    return found if isinstance(found, dict) else None


def _id(found: Mapping[str, object]) -> Id:
    given = found.get("id")
    if isinstance(given, str):
        return given[:MOST_NAME]
    return given if isinstance(given, int) and abs(given) < 1 << 64 else None
