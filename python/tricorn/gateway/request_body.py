"""`wsgi.input` while the body still comes (`request_buffering = off`)."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from tricorn._core import BodySource

BUFFER = 64 * 1024


class RequestBody(io.RawIOBase):
    """Reads what has come, and waits for the client if nothing has."""

    def __init__(self, source: BodySource) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        piece = self._receive(len(view))
        view[: len(piece)] = piece
        return len(piece)

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self._receive(sys.maxsize), b""))

    def _receive(self, most: int) -> bytes:
        # The core comes back now and then without anything, so that exceptions meant for this thread are raised in it.
        while (piece := self._source.receive(most)) is None:
            pass
        return piece


def reader(source: BodySource) -> io.BufferedReader:
    """The standard library's buffered reader, as for a body that is in a file."""
    return io.BufferedReader(RequestBody(source), BUFFER)
