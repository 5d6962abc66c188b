"""Thousands of clients in one thread: what counts as an answer."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from benches.harness.process import DidNotServe
from benches.idle.crowd import HEAD, Crowd, is_200, is_echo


@pytest.mark.parametrize(("status", "good"), [("200 OK", 3), ("500 Internal Server Error", 0)])
def test_crowd_of_connections(status: str, good: int) -> None:
    """Of a server that answers the first request of a connection with 200, and what comes then with `status`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve(connection: socket.socket) -> None:
            with connection, contextlib.suppress(ConnectionResetError):
                while asked := connection.recv(4096):
                    said = "200 OK" if b"GET / " in asked else status
                    connection.sendall(f"HTTP/1.1 {said}\r\nContent-Length: 1\r\n\r\n7".encode())

        def accept() -> None:
            for _ in range(3):
                threads.append(threading.Thread(target=serve, args=(listener.accept()[0],)))
                threads[-1].start()

        threads = [threading.Thread(target=accept)]
        threads[0].start()
        expected = contextlib.nullcontext() if good else pytest.raises(DidNotServe, match="answered 0 of 3")
        with Crowd(listener.getsockname()[1], 3) as crowd:
            for _ in range(2):
                crowd.ask(HEAD % (b"/work?us=500", b""))
                with expected:
                    assert crowd.answers(10).good == good
        for thread in threads:
            thread.join(10)


def test_a_crowd_without_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(DidNotServe, match="connection 1"), Crowd(port, 1):
        pass


def test_answers_in_pieces() -> None:
    assert is_200(b"HTTP/1.1 200 OK\r\nContent-Le") is None
    assert is_200(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n") is False
    assert is_echo(b"\x81\x05hell") is None
    assert is_echo(b"\x81\x05hello") is True
    assert is_echo(b"\xc1\x03\xca\x48\x00") is True
    assert is_echo(b"\x88\x02\x03\xe8") is False
