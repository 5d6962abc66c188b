"""The load generator: answers in pieces, clients that find no connection, clients that lose patience."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from benches.harness.open_loop import CLOSED, GAVE_UP, Answer, Clients, Planned, parse

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LAST = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket, bytes], None]], int]]:
    """A server with a thread per connection, that calls a function for each request."""
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]

    def converse(connection: socket.socket, answer: Callable[[socket.socket, bytes], None]) -> None:
        with connection:
            while request := connection.recv(4096):
                answer(connection, request)
                if connection.fileno() < 0:
                    return

    def start(answer: Callable[[socket.socket, bytes], None]) -> int:
        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=converse, args=(connection, answer), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return port

    yield start
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def plan(*dues: float, path: str = "/") -> list[Planned]:
    return [Planned(due, path, 0.0) for due in dues]


def test_an_answer_is_one_when_it_is_complete() -> None:
    assert [parse(OK[:length]) for length in range(len(OK))] == [None] * len(OK)
    assert parse(OK) == Answer(200, b"ok", keeps=True)
    assert parse(LAST) == Answer(503, b"", keeps=False)


def test_one_connection_is_used_again_and_again(serve: Callable[..., int]) -> None:
    port = serve(lambda connection, request: connection.sendall(OK))
    with Clients(port, 1) as clients:
        outcomes = clients.run(plan(0, 0.01, 0.02))
        assert [outcome.status for outcome in outcomes] == [200] * 3
        assert clients.opened == 1


def test_latency_counts_from_when_a_request_was_due(serve: Callable[..., int]) -> None:
    def slowly(connection: socket.socket, request: bytes) -> None:
        time.sleep(0.05)
        connection.sendall(OK)

    with Clients(serve(slowly), 1) as clients:
        first, second = clients.run(plan(0, 0.01))
    assert not first.held_up
    assert second.held_up
    assert second.latency >= 0.08
    assert second.late >= 0.03


def test_every_client_opens_its_connection(serve: Callable[..., int]) -> None:
    port = serve(lambda connection, request: connection.sendall(OK))
    with Clients(port, 5) as clients:
        clients.open_all(plan(*(number / 200 for number in range(5))))
        assert clients.opened == 5


def test_what_the_server_closes_is_opened_again(serve: Callable[..., int]) -> None:
    def once(connection: socket.socket, request: bytes) -> None:
        connection.sendall(LAST)
        connection.close()

    with Clients(serve(once), 1) as clients:
        outcomes = clients.run(plan(0, 0.02))
        assert [outcome.status for outcome in outcomes] == [503, 503]
        assert clients.opened == 2


def test_a_connection_without_an_answer_is_a_failure(serve: Callable[..., int]) -> None:
    with Clients(serve(lambda connection, request: connection.close()), 1) as clients:
        assert [outcome.status for outcome in clients.run(plan(0, 0.02))] == [CLOSED, CLOSED]


def test_patience_ends_whether_or_not_the_request_was_sent(serve: Callable[..., int]) -> None:
    with Clients(serve(lambda connection, request: None), 1, patience=0.05) as clients:
        outcomes = clients.run(plan(0, 0.01))
    assert [outcome.status for outcome in outcomes] == [GAVE_UP, GAVE_UP]
    assert all(outcome.latency >= 0.05 for outcome in outcomes)
