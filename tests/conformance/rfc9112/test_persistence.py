"""RFC 9112 section 9: how long a connection lives, and in which order it answers."""

from __future__ import annotations

import threading

import pytest

from tests.conftest import Pool
from tests.harness import Server, Wire
from tests.harness.wire import Reply, request


def test_many_requests_on_one_connection(keeping_server: Server) -> None:
    with keeping_server.connect() as wire:
        for _ in range(100):
            reply = wire.get("/hello")
            assert (reply.status, reply.body, reply.closes) == (200, b"Hello\n", False)


@pytest.mark.parametrize(
    "target", ["/hello", "/stream", "/writes", "/iterables?kind=empty_list", "/files?kind=disk&raw"]
)
def test_any_response_leaves_the_connection_usable(keeping_server: Server, target: str) -> None:
    with keeping_server.connect() as wire:
        for _ in range(3):
            assert wire.get(target).status == 200


@pytest.mark.parametrize("value", ["close", "Close", "CLOSE"])
def test_close_is_obeyed(keeping_server: Server, value: str) -> None:
    with keeping_server.connect() as wire:
        wire.send(request("GET", "/hello", [("Connection", value)]), request("GET", "/hello"))
        reply = wire.reply()
        assert reply.closes
        wire.closed()


@pytest.mark.parametrize("value", ["foo, close", "close, foo", "keep-alive, close", "foo,\tClose"])
@pytest.mark.beyond_reference("lists of connection options are not read")
def test_close_in_a_list_is_obeyed(keeping_server: Server, value: str) -> None:
    with keeping_server.connect() as wire:
        wire.send(request("GET", "/hello", [("Connection", value)]))
        assert wire.reply().closes
        wire.closed()


@pytest.mark.beyond_reference("only the first Connection field is read")
def test_close_in_a_second_field_is_obeyed(keeping_server: Server) -> None:
    with keeping_server.connect() as wire:
        wire.send(request("GET", "/hello", [("Connection", "foo"), ("Connection", "close")]))
        assert wire.reply().closes
        wire.closed()


def test_an_old_client_is_left_after_one_response(keeping_server: Server) -> None:
    with keeping_server.connect() as wire:
        reply = wire.get("/hello", version="1.0")
        assert reply.closes
        wire.closed()


def test_an_old_client_may_ask_for_more(keeping_server: Server) -> None:
    with keeping_server.connect() as wire:
        for _ in range(3):
            reply = wire.get("/hello", ("Connection", "keep-alive"), version="1.0")
            assert not reply.closes


def test_an_old_client_that_asks_for_more_gets_a_body_with_an_end(keeping_server: Server) -> None:
    with keeping_server.connect() as wire:
        reply = wire.get("/stream", ("Connection", "keep-alive"), version="1.0")
        assert reply.framing == "close"
        assert reply.closes


def test_a_sync_worker_closes_and_says_so(pool: Pool) -> None:
    server = pool.get(
        worker_class="sync", keep_alive=5, body_buffer_size=65536, env={"SCRIPT_NAME": ""}, transport="tcp"
    )
    with server.connect() as wire:
        reply = wire.get("/hello")
        if not reply.closes:
            assert wire.get("/hello").status == 200
        else:
            wire.closed()


def test_what_comes_after_the_last_request_is_ignored(keeping_server: Server) -> None:
    before = keeping_server.calls()
    with keeping_server.connect() as wire:
        wire.send(request("GET", "/hello", [("Connection", "close")]), b"\0\1\2 GET / HTTP/1.1\r\n\r\n")
        assert wire.reply().status == 200
        wire.closed()
    assert keeping_server.calls() == before + 1


def test_pipelined_requests_are_answered_in_order(keeping_server: Server) -> None:
    with keeping_server.connect() as wire:
        wire.send(*(request("GET", f"/echo/{number}") for number in range(50)))
        for number in range(50):
            assert wire.reply().json()["RAW_URI"][1] == f"/echo/{number}"


def test_a_slow_request_holds_the_pipelined_ones_behind_it(keeping_server: Server) -> None:
    with keeping_server.connect() as wire:
        wire.send(request("GET", "/sleep?s=0.3"), request("GET", "/hello"))
        assert wire.reply().body.isdigit()
        assert wire.reply().body == b"Hello\n"


def test_pipelined_requests_with_bodies(keeping_server: Server) -> None:
    with keeping_server.connect() as wire:
        for size in range(0, 200, 7):
            wire.send(request("POST", "/body", [("Content-Type", "a/b")], b"b" * size))
            wire.send(request("POST", "/body", [("Content-Type", "a/b"), ("Transfer-Encoding", "chunked")]))
            wire.send(b"1\r\nx\r\n%x\r\n%b\r\n0\r\n\r\n" % (size + 1, b"c" * (size + 1)))
        for size in range(0, 200, 7):
            assert wire.reply().json()["length"] == size
            assert wire.reply().json()["length"] == size + 2


def test_thousands_of_pipelined_requests(keeping_server: Server) -> None:
    """Sent without waiting for one answer: the server must neither drop, nor reorder, nor block for ever."""
    count = 4_000
    with keeping_server.connect() as wire:
        sender = threading.Thread(
            target=wire.send, args=[request("GET", f"/fields?X-Number={number}") for number in range(count)]
        )
        sender.start()
        buffered = Buffered(wire)
        for number in range(count):
            assert buffered.reply().get("x-number") == str(number)
        sender.join()


class Buffered:
    """Reads replies without copying the unread rest for each line, which the strict client does."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.rest = b""

    def reply(self) -> Reply:
        while b"\r\n0\r\n\r\n" not in self.rest and self.rest.count(b"\r\n\r\n") < 2:
            piece = self.wire.sock.recv(4096)
            assert piece, "the connection ended"
            self.rest += piece
        self.wire.unread = self.rest
        reply = self.wire.reply()
        self.rest = self.wire.unread
        self.wire.unread = b""
        return reply


def test_an_idle_connection_is_closed_in_time_and_cleanly(pool: Pool) -> None:
    server = pool.get(worker_class="gthread", keep_alive=1)
    with server.connect(timeout=6) as wire:
        assert not wire.get("/hello").closes
        wire.closed()


def test_without_keep_alive_every_connection_closes(pool: Pool) -> None:
    server = pool.get(worker_class="gthread", keep_alive=0)
    with server.connect() as wire:
        assert wire.get("/hello").closes
        wire.closed()
