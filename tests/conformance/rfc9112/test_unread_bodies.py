"""RFC 9112 section 9.3: a body that is not read to its end, and what the answer says of the connection.

"A server MUST read the entire request message body or close the connection after sending its response, since otherwise
the remaining data on a persistent connection would be misinterpreted as the next request."
"""

from __future__ import annotations

import pytest

from tests.conformance.conftest import conforming
from tests.conftest import Pool
from tests.harness import Server, Wire, each
from tests.harness.classes import EVENT_LOOPS, SERVERS_OF_CLASSES
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("its event loops close without a word")


@pytest.fixture(scope="module", params=each(*EVENT_LOOPS, *SERVERS_OF_CLASSES))
def streaming_server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    """Of the classes in which an application may answer before the body has come."""
    return conforming(pool, request.param, "tcp")


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_kept_connection_is_kept(streaming_server: Server, framing: str) -> None:
    """Either the answer says that the connection is closed, or the rest of the body and another request may follow."""
    fields, first, rest = {
        "length": ([("Content-Length", "10")], b"01234", b"56789"),
        "chunked": ([("Transfer-Encoding", "chunked")], b"a\r\n01234", b"56789\r\n0\r\n\r\n"),
    }[framing]
    with streaming_server.connect() as wire:
        wire.send(request("POST", "/early", fields), first)
        reply = wire.reply()
        assert reply.status == 200
        if reply.closes:
            wire.closed()
            return
        wire.send(rest, request("GET", "/hello"))
        assert wire.reply().body == b"Hello\n"


def test_a_client_that_was_not_told_to_send_is_told_of_the_end(streaming_server: Server) -> None:
    """It may begin with its body, or not: nothing tells which (RFC 9110 section 10.1.1)."""
    with streaming_server.connect() as wire:
        wire.send(request("POST", "/early", [("Content-Length", "10"), ("Expect", "100-continue")]))
        reply = wire.reply()
        if not reply.closes:
            wire.send(b"0123456789", request("GET", "/hello"))
            assert wire.reply().body == b"Hello\n"


def received(wire: Wire) -> bytes:
    piece = wire.sock.recv(1000)
    assert piece, "the connection has ended"
    return piece


def test_an_answer_that_begins_before_the_body_is_read_keeps_the_connection(pool: Pool) -> None:
    """An application that reads as it answers is expected to read on."""
    server = pool.get("asgi.play:application", worker_class="asgi", keep_alive=5)
    steps = [("send", {"type": "http.response.start", "status": 200}), ("echo",)]
    with server.connect() as wire:
        wire.send(request("POST", "/play", [("Content-Length", "10"), ("X-Do", repr(steps))]), b"01234")
        begun = b""
        while not begun.endswith(b"\r\n01234\r\n"):
            begun += received(wire)
        assert b"\r\nConnection: keep-alive\r\n" in begun
        wire.send(b"56789")
        rest = b""
        while not rest.endswith(b"\r\n0\r\n\r\n"):
            rest += received(wire)
        assert wire.get("/told?tag=none").status == 200
