"""Requests that are due at times of their own, each with what became of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from benches.harness.load import singly

OPENING = [(0.0, "/first"), (0.01, "/first")]


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server with a thread for each connection; it answers with the path, and closes after /last."""
    listener = socket.create_server(("127.0.0.1", 0))

    def converse(connection: socket.socket) -> None:
        with connection:
            while request := connection.recv(4096):
                path = request.split(b" ")[1]
                ends = b"Connection: close\r\n" if path == b"/last" else b""
                head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%b\r\n" % (len(path), ends)
                connection.sendall(head + path)
                if ends:
                    return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=converse, args=(connection,), daemon=True).start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    accepting.join(10)
    listener.close()


def test_each_request_is_told_in_the_order_of_its_due(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benches.harness.load.SETTLED", 0.2)
    outcomes, opened = singly(port, OPENING, [(0.0, "/a"), (0.05, "/last"), (0.1, "/b"), (0.15, "/c")])
    assert [(one.body, one.ended) for one in outcomes] == [("/a", 200), ("/last", 200), ("/b", 200), ("/c", 200)]
    assert [round(one.due, 6) for one in outcomes] == [0.0, 0.05, 0.1, 0.15], "from when the counting began"
    assert opened == 1, "the one that /last closed"
