"""Thousands of connections in one thread."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from benches.harness.process import DidNotServe

if TYPE_CHECKING:
    from typing_extensions import Self


class Connections(ABC):
    """Inside the block there are `count` connections. Each has had an answer: the server has taken it."""

    def __init__(self, port: int, count: int, opening: bytes) -> None:
        """`opening`: what each says first."""
        self.port, self.count, self.opening = port, count, opening
        self.sockets: list[socket.socket] = []

    @abstractmethod
    def read_answer(self, connection: socket.socket) -> None:
        """Raises OSError if none comes."""

    def __enter__(self) -> Self:
        self.sockets.clear()
        try:
            for number in range(1, self.count + 1):  # noqa: B007 (the error has it)
                connection = socket.create_connection(("127.0.0.1", self.port), timeout=10)
                self.sockets.append(connection)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.sendall(self.opening)
                self.read_answer(connection)
        except OSError as error:
            self.__exit__()
            raise DidNotServe(f"connection {number}: {error}") from error
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.sockets:
            connection.close()
