"""While one request waits for another server, in whatever client library, the worker answers other requests."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Pool
from tests.harness import Server
from tests.harness.needs import needs

if TYPE_CHECKING:
    from typing_extensions import Self

BODY = b"at last"
#: An error packet of MySQL's: the server's first word may be that it has no room.
NO_ROOM = b"\xff\x10\x04" + b"Too many connections"


class Held:
    """A server that listens at once and says its first word when it is released."""

    def __init__(self, converse: Callable[[socket.socket], None]) -> None:
        self.converse = converse
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.asked = threading.Event()
        self.released = threading.Event()
        self.thread = threading.Thread(target=self.serve)

    def __enter__(self) -> Self:
        self.listener.settimeout(30)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.thread.join(60)
        self.listener.close()

    def serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection:
            connection.settimeout(30)
            self.asked.set()
            self.released.wait(60)
            self.converse(connection)


def http(connection: socket.socket) -> None:
    connection.recv(65536)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    connection.sendall(head % len(BODY) + BODY)


def redis(connection: socket.socket) -> None:
    """Says OK to whatever is asked before GET."""
    while received := connection.recv(65536):
        commands = re.findall(rb"\*\d+\r\n\$\d+\r\n(\w+)\r\n", received)
        connection.sendall(
            b"".join(b"$%d\r\n%b\r\n" % (len(BODY), BODY) if name == b"GET" else b"+OK\r\n" for name in commands)
        )


def mysql(connection: socket.socket) -> None:
    connection.sendall(len(NO_ROOM).to_bytes(3, "little") + b"\0" + NO_ROOM)


LIBRARIES = {
    "sockets": (http, "at last"),
    "urllib_request": (http, "at last"),
    "requests": (http, "at last"),
    "urllib3": (http, "at last"),
    "redis": (redis, "at last"),
    "pymysql": (mysql, "Too many connections"),
}


@pytest.fixture(scope="module", params=["gevent", "eventlet"])
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    needs(request.param)
    return pool.get("clients:application", worker_class=request.param)


@pytest.mark.parametrize("library", LIBRARIES)
def test_others_are_answered_meanwhile(server: Server, library: str) -> None:
    if library not in ("sockets", "urllib_request"):
        needs(library)
    converse, answer = LIBRARIES[library]
    with Held(converse) as held, server.connect(timeout=60) as waiting, server.connect() as other:
        waiting.send(f"GET /{library}?port={held.port} HTTP/1.1\r\nHost: t\r\n\r\n".encode())
        assert held.asked.wait(30)
        for _ in range(10):
            assert other.get("/hello").body == b"hello"
        held.released.set()
        reply = waiting.reply()
        assert (reply.status, answer in reply.text) == (200, True), reply.text
