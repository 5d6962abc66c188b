"""Thousands of connections of HTTP/2: each has had an answer, and says nothing more."""

from __future__ import annotations

import socket

from benches.harness.process import DidNotServe
from benches.http2.frames import ACK, BEGIN, END_STREAM, SETTINGS, fields, frame, frames, head


class Crowd:
    """`with Crowd(port, count):` has so many connections."""

    def __init__(self, port: int, count: int) -> None:
        self.port, self.count = port, count
        self.sockets: list[socket.socket] = []

    def __enter__(self) -> Crowd:  # noqa: PYI034 (typing.Self is younger than Python 3.10)
        opening = BEGIN + head(1, fields()) + frame(SETTINGS, ACK, 0)
        try:
            for number in range(1, self.count + 1):  # noqa: B007 (the error has it)
                connection = socket.create_connection(("127.0.0.1", self.port), timeout=10)
                self.sockets.append(connection)
                connection.sendall(opening)
                if not any(
                    stream == 1 and kind < 2 and flags & END_STREAM for kind, flags, stream, _ in frames(connection)
                ):
                    raise ConnectionError("closed without an answer")
        except OSError as error:
            self.__exit__()
            raise DidNotServe(f"connection {number}: {error}") from error
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.sockets:
            connection.close()
