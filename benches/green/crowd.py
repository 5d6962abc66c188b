"""Thousands of clients in one thread: each has a connection, all ask at once, and each waits for its answer."""

from __future__ import annotations

import select
import socket
import time
from typing import NamedTuple

from benches.harness.open_loop import parse
from benches.harness.process import DidNotServe

REQUEST = b"GET /?%b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Answers(NamedTuple):
    """Seconds from the first request. `largest` is the greatest number that an answer's body said."""

    sent: float
    first: float
    last: float
    good: int
    largest: int
    #: CPU seconds of this thread: well below `last`, or the clients were the bottleneck.
    cpu: float


class Crowd:
    """`with Crowd(port, count) as crowd:` has `count` connections. Each has had an answer: the server has taken it."""

    def __init__(self, port: int, count: int) -> None:
        self.port, self.count = port, count
        self.epoll = select.epoll()
        self.sockets: dict[int, socket.socket] = {}
        self.received: dict[int, bytes] = {}

    def __enter__(self) -> Crowd:  # noqa: PYI034 (typing.Self is younger than Python 3.10)
        try:
            for _ in range(self.count):
                self._open()
        except OSError as error:
            opened = len(self.sockets)
            self.__exit__()
            raise DidNotServe(f"connection {opened + 1}: {error}") from error
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.sockets.values():
            connection.close()
        self.epoll.close()

    def _open(self) -> None:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = connection.fileno()
        self.sockets[number] = connection
        connection.sendall(REQUEST % b"")
        received = b""
        while parse(received) is None:
            piece = connection.recv(4096)
            if not piece:
                raise ConnectionError("closed without an answer")
            received += piece
        connection.setblocking(False)
        self.epoll.register(number, select.EPOLLIN)

    def ask(self, seconds: float) -> None:
        """Every client asks for a sleep of so many seconds."""
        self.received = dict.fromkeys(self.sockets, b"")
        self.cpu = time.thread_time()
        self.start = time.perf_counter()
        request = REQUEST % f"{seconds:g}".encode()
        for connection in self.sockets.values():
            connection.send(request)
        self.sent = time.perf_counter() - self.start

    def answers(self, patience: float) -> Answers:
        first = last = 0.0
        good = largest = 0
        while self.received and (left := patience - (time.perf_counter() - self.start)) > 0:
            for number, _ in self.epoll.poll(left):
                last = time.perf_counter() - self.start
                first = first or last
                said = self._said(number)
                if said is not None:
                    good += said >= 0
                    largest = max(largest, said)
        return Answers(self.sent, first, last, good, largest, time.thread_time() - self.cpu)

    def _said(self, number: int) -> int | None:
        """The number in the answer; -1 if that is another one than 200 or none comes, None if more of it will come."""
        try:
            piece = self.sockets[number].recv(4096)
        except OSError:
            piece = b""
        received = self.received.get(number, b"") + piece
        answer = parse(received)
        if answer is None and piece:
            self.received[number] = received
            return None
        self.received.pop(number, None)
        if not piece:
            self.epoll.unregister(number)
            self.sockets.pop(number).close()
        return int(answer.body) if answer is not None and answer.status == 200 else -1
