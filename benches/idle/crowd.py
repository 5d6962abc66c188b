"""Thousands of clients in one thread: each has a connection, all ask at once, and each waits for its answer."""

from __future__ import annotations

import base64
import re
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar

from benches.harness.crowd import Connections
from benches.harness.process import DidNotServe

HEAD = b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\n%b\r\n"
UPGRADE = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %b\r\n"
    % base64.b64encode(bytes(16))
)
OFFER = b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
MESSAGE = b"\x81\x85\0\0\0\0hello"
"""A text frame, masked with zeros (RFC 6455, section 5.3)."""
HEAD_OF_ANSWER = re.compile(rb"HTTP/1.1 (\d+).*?\r\n\r\n", re.DOTALL)
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)


T = TypeVar("T")


class Answers(NamedTuple):
    """Seconds from the first request to the last answer; `cpu` is this thread's: near it, the clients were too slow."""

    last: float
    good: int
    cpu: float


class Crowd(Connections):
    """`with Crowd(port, count) as crowd:` has `count` connections.

    All ask before the first is listened to, and answers wait in the sockets: the last one is read when it comes.
    """

    def __init__(self, port: int, count: int, *, websocket: bool = False, deflate: bool = False) -> None:
        opening = HEAD % (b"/echo", UPGRADE + (OFFER if deflate else b"")) if websocket else HEAD % (b"/", b"")
        super().__init__(port, count, opening)
        self.is_answer: Callable[[bytes], bool | None] = is_echo if websocket else is_200
        self.deflate = False

    def read_answer(self, connection: socket.socket) -> None:
        head = whole(connection, lambda received: received if status(received) else None)
        self.deflate = b"permessage-deflate" in head

    def ask(self, request: bytes) -> None:
        """Every client sends it."""
        self.cpu, self.start = time.thread_time(), time.perf_counter()
        for connection in self.sockets:
            connection.sendall(request)

    def answers(self, patience: float) -> Answers:
        """Raises DidNotServe unless each client has a good one in time."""
        good = 0
        for connection in self.sockets:
            connection.settimeout(max(0.001, patience - (time.perf_counter() - self.start)))
            with suppress(OSError):
                good += whole(connection, self.is_answer)
        if good < self.count:
            raise DidNotServe(f"answered {good} of {self.count} requests within {patience:g} s")
        return Answers(time.perf_counter() - self.start, good, time.thread_time() - self.cpu)


def whole(connection: socket.socket, judged: Callable[[bytes], T | None]) -> T:
    """What is said of an answer once all of it has come."""
    received = b""
    while (said := judged(received)) is None:
        piece = connection.recv(4096)
        if not piece:
            raise ConnectionError("closed without an answer")
        received += piece
    return said


def status(received: bytes) -> int | None:
    """None if more of the answer will come. Only what has a Content-Length: all servers here send one."""
    head = HEAD_OF_ANSWER.match(received)
    if head is None:
        return None
    length = LENGTH.search(head[0])
    is_whole = len(received) >= head.end() + (int(length[1]) if length else 0)
    return int(head[1]) if is_whole else None


def is_200(received: bytes) -> bool | None:
    """None if more of the answer will come."""
    found = status(received)
    return None if found is None else found == 200


def is_echo(received: bytes) -> bool | None:
    """A whole text frame, compressed or not."""
    if len(received) < 2 or len(received) < 2 + (received[1] & 127):
        return None
    return received[0] & 0x0F == 1
