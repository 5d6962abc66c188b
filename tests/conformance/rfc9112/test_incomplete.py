"""RFC 9112 section 8: a request that ends too early is no request."""

from __future__ import annotations

import pytest

from tests.harness import Server, until, with_each
from tests.harness.wire import request

LENGTH = request("POST", "/body", [("Content-Type", "a/b"), ("Content-Length", "1000")])
CHUNKS = request("POST", "/body", [("Content-Type", "a/b"), ("Transfer-Encoding", "chunked")])

CUT = {
    "request_line": b"GET /hello HT",
    "head": b"GET /hello HTTP/1.1\r\nHost: t\r\nX-A",
    "end_of_head": b"GET /hello HTTP/1.1\r\nHost: t\r\n",
    "length_at_once": LENGTH,
    "length": LENGTH + b"x" * 999,
    "chunk_size": CHUNKS + b"5",
    "chunk": CHUNKS + b"5\r\nabc",
    "between_chunks": CHUNKS + b"3\r\nabc\r\n",
    "last_chunk": CHUNKS + b"3\r\nabc\r\n0\r\n",
    "trailer": CHUNKS + b"3\r\nabc\r\n0\r\nX-T: ",
}
BODIES = {name: sent for name, sent in CUT.items() if sent.startswith(b"POST")}
HEADS = {name: sent for name, sent in CUT.items() if name not in BODIES}


@with_each("cut", HEADS)
def test_a_head_that_ends_early(tcp_server: Server, cut: bytes) -> None:
    before = tcp_server.calls()
    with tcp_server.connect() as wire:
        wire.send(cut).finish_sending()
        wire.ended()
    assert tcp_server.calls() == before


@pytest.mark.beyond_reference("the application is called before the body is there")
@with_each("cut", BODIES)
def test_a_body_that_ends_early_never_reaches_the_application(tcp_server: Server, cut: bytes) -> None:
    before = tcp_server.calls()
    with tcp_server.connect() as wire:
        wire.send(cut).finish_sending()
        answer = wire.ended()
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
    assert tcp_server.calls() == before


@pytest.mark.beyond_reference("the application is called before the body is there")
@with_each("cut", CUT)
def test_a_client_that_crashes(tcp_server: Server, cut: bytes) -> None:
    before = tcp_server.calls()
    wire = tcp_server.connect()
    wire.send(cut)
    wire.reset()
    assert tcp_server.get("/count").status == 200
    assert tcp_server.calls() == before


def test_a_client_that_only_stops_sending_gets_its_answer(server: Server, version: str) -> None:
    """A half-closed connection is no closed one."""
    with server.connect() as wire:
        wire.send(request("GET", "/sleep?s=0.1", version=version)).finish_sending()
        assert wire.reply().status == 200
        wire.closed()


def test_a_connection_without_a_request(tcp_server: Server) -> None:
    with tcp_server.connect() as wire:
        wire.finish_sending()
        assert wire.ended() == b""
    until(lambda: tcp_server.get("/hello").status == 200, "the server goes on")
