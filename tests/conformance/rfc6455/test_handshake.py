"""RFC 6455 section 4.2: the opening handshake, and who is refused."""

from __future__ import annotations

import pytest

from tests.conformance.rfc6455.conftest import echoing
from tests.conftest import Pool
from tests.harness import Server, Wire
from tests.harness.frames import KEY, Frames, accept_of, frame, handshake
from tests.harness.wire import Reply, request


@pytest.fixture(scope="session", params=["tcp", "unix"])
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    """HTTP/2 has another handshake (`tests/conformance/rfc8441`)."""
    return echoing(pool, request.param)


def refused(server: Server, *asked: bytes) -> Reply:
    with Wire(server.address) as wire:
        wire.send(*asked)
        reply = wire.reply()
        if reply.closes:
            wire.closed()
        return reply


def test_handshake_response(server: Server) -> None:
    with Frames(server.address) as socket:
        response = socket.response
        assert (response.version, response.status) == ("HTTP/1.1", 101)
        assert (response.get("upgrade") or "").lower() == "websocket"
        assert (response.get("connection") or "").lower() == "upgrade"
        assert response.all("sec-websocket-accept") == [accept_of(KEY)] == ["s3pPLMBiTxaQ9kYGzzhZRbK+xOo="]
        for absent in ("sec-websocket-protocol", "sec-websocket-extensions", "content-length", "transfer-encoding"):
            assert response.all(absent) == []
        socket.echoes()
        socket.goodbye()


@pytest.mark.parametrize(
    "fields",
    [
        [("Upgrade", "WebSocket"), ("Connection", "keep-alive, UPGRADE")],
        [("Connection", "keep-alive"), ("Connection", "upgrade")],
        [("Upgrade", "foo/1, websocket")],
        [("Origin", "http://elsewhere.example")],
        [("Sec-WebSocket-Extensions", "x-webkit-deflate-frame, mux; max-channels=4")],
    ],
    ids=["case", "two fields", "list", "origin", "unknown extensions"],
)
def test_other_ways_to_ask(server: Server, fields: list[tuple[str, str]]) -> None:
    with Frames(server.address, "/echo", *fields) as socket:
        assert socket.response.get("sec-websocket-extensions") is None
        socket.echoes()
        socket.goodbye()


def test_frames_behind_the_request_are_not_lost(server: Server) -> None:
    """A client should wait for the answer (section 4.1); what it sent before is a message all the same."""
    with Wire(server.address) as wire:
        wire.send(handshake("/echo"), frame(0x81, b"early"), frame(0x81, b"bird"))
        assert wire._head(False).status == 101
        assert wire._exactly(13, "two messages") == b"\x81\x05early\x81\x04bird"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (handshake("/echo", [("Sec-WebSocket-Version", "12")]), 426),
        (handshake("/echo", drop=("Sec-WebSocket-Version",)), 426),
        (handshake("/echo", [("Sec-WebSocket-Version", "13, 14")]), 426),
        (handshake("/echo", drop=("Sec-WebSocket-Key",)), 400),
        (handshake("/echo", [("Sec-WebSocket-Key", "short")]), 400),
        (handshake("/echo", [("Sec-WebSocket-Key", KEY), ("Sec-WebSocket-Key", KEY)]), 400),
        (handshake("/echo", drop=("Connection",)), 400),
        (handshake("/echo", [("Sec-WebSocket-Protocol", "a b")]), 400),
        (handshake("/echo", [("Sec-WebSocket-Extensions", "permessage-deflate; =")]), 400),
        (handshake("/echo").replace(b"GET ", b"POST ", 1), 405),
        (handshake("/echo", [("Content-Length", "5")]) + b"hello", 400),
    ],
    ids=[
        "version 12",
        "no version",
        "two versions",
        "no key",
        "short key",
        "two keys",
        "no connection",
        "protocol",
        "extensions",
        "POST",
        "body",
    ],
)
def test_bad_handshakes(server: Server, asked: bytes, status: int) -> None:
    reply = refused(server, asked)
    assert reply.status == status
    if status == 426:
        # RFC 6455 section 4.4; RFC 9110 section 15.5.22.
        assert reply.get("sec-websocket-version") == "13"
        assert (reply.get("upgrade") or "").lower() == "websocket"
        assert "upgrade" in ", ".join(reply.all("connection")).lower().split(", ")
    if status == 405:
        assert reply.get("allow") == "GET"


@pytest.mark.parametrize(
    "asked",
    [
        request("GET", "/hello"),
        request("GET", "/hello", [("Upgrade", "h2c"), ("Connection", "Upgrade")]),
        # RFC 9110 section 7.8: Upgrade in an HTTP/1.0 request is ignored.
        handshake("/hello").replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
    ids=["plain", "another protocol", "HTTP/1.0"],
)
def test_requests_that_are_no_handshake(server: Server, asked: bytes) -> None:
    reply = refused(server, asked)
    assert (reply.status, reply.body) == (200, b"Hello\n")


@pytest.mark.parametrize(
    ("offered", "chosen", "expected"),
    [
        (["chat, superchat"], "superchat", "superchat"),
        (["chat", "superchat"], "chat", "chat"),
        (["chat"], "", None),
        ([], "", None),
    ],
)
def test_handshake_subprotocols(server: Server, offered: list[str], chosen: str, expected: str | None) -> None:
    """Section 4.2.2 /subprotocol/: one of those offered, or none."""
    fields = [("Sec-WebSocket-Protocol", value) for value in offered]
    with Frames(server.address, f"/subprotocol?choose={chosen}", *fields) as socket:
        assert socket.response.get("sec-websocket-protocol") == expected
        names = [name.strip() for value in offered for name in value.split(",")]
        assert socket.message() == repr(names)
        assert socket.frame().code == 1000


def test_a_subprotocol_that_was_not_offered(server: Server) -> None:
    """A client would have to fail the connection (section 4.1): the application's mistake is a 500 instead."""
    reply = refused(server, handshake("/subprotocol?choose=other", [("Sec-WebSocket-Protocol", "chat")]))
    assert reply.status == 500


def test_the_connection_goes_on_after_a_request(server: Server) -> None:
    """A handshake on a kept connection."""
    with Wire(server.address) as wire:
        assert wire.get("/hello").status == 200
        wire.send(handshake("/echo"))
        assert wire._head(False).status == 101
        wire.send(frame(0x81, b"hi"))
        assert wire._exactly(4, "a frame") == b"\x81\x02hi"
