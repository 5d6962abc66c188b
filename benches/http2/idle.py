"""Thousands of connections of HTTP/2: each has had an answer, and says nothing more."""

from __future__ import annotations

import socket

from benches.harness.crowd import Connections
from benches.http2.frames import ACK, BEGIN, END_STREAM, SETTINGS, fields, frame, frames, head


class Crowd(Connections):
    """`with Crowd(port, count):` has so many connections."""

    def __init__(self, port: int, count: int) -> None:
        super().__init__(port, count, BEGIN + head(1, fields()) + frame(SETTINGS, ACK, 0))

    def read_answer(self, connection: socket.socket) -> None:
        if not any(stream == 1 and kind < 2 and flags & END_STREAM for kind, flags, stream, _ in frames(connection)):
            raise ConnectionError("closed without an answer")
