"""What the benchmark of greenlet workers makes of what its load generators say."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from benches.green.crowd import Crowd
from benches.harness.process import DidNotServe


@pytest.mark.parametrize(("status", "good"), [("200 OK", 3), ("500 Internal Server Error", 0)])
def test_a_crowd(status: str, good: int) -> None:
    """Of a server that answers the first request of a connection with 200, and what comes then with `status`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve(connection: socket.socket) -> None:
            with connection, contextlib.suppress(ConnectionResetError):
                while asked := connection.recv(4096):
                    said = "200 OK" if b"/? " in asked else status
                    connection.sendall(f"HTTP/1.1 {said}\r\nContent-Length: 1\r\n\r\n7".encode())

        def accept() -> None:
            for _ in range(3):
                threads.append(threading.Thread(target=serve, args=(listener.accept()[0],)))
                threads[-1].start()

        threads = [threading.Thread(target=accept)]
        threads[0].start()
        with Crowd(listener.getsockname()[1], 3) as crowd:
            for _ in range(2):
                crowd.ask(0.5)
                answers = crowd.answers(10)
                assert answers.good == good
                assert answers.largest == (7 if good else 0)
        for thread in threads:
            thread.join(10)


def test_a_crowd_without_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(DidNotServe, match="connection 1"), Crowd(port, 1):
        pass
