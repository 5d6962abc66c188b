"""RFC 6455 section 5.5: pings, pongs, and the closing handshake of section 7."""

from __future__ import annotations

import struct

import pytest

from tests.conformance.rfc6455.conftest import Open
from tests.harness import Server
from tests.harness.frames import CLOSE, PING, PONG, TEXT, Frames, frame


@pytest.mark.parametrize("payload", [b"", b"Hello", bytes([0, 255, 254, 128]), bytes(125)])
def test_a_ping_is_answered_with_its_payload(socket: Frames, payload: bytes) -> None:
    got = socket.put(PING, payload).frame()
    assert (got.first, got.payload) == (PONG, payload)
    socket.goodbye()


def test_pings_in_a_row(socket: Frames) -> None:
    socket.send(*[frame(PING, b"%d" % number) for number in range(10)])
    assert [socket.frame().payload for _ in range(10)] == [b"%d" % number for number in range(10)]


def test_a_pong_nobody_asked_for(socket: Frames) -> None:
    socket.put(PONG, b"unsolicited").put(PONG)
    socket.echoes()
    socket.goodbye()


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 3000, 3999, 4000, 4999])
def test_a_close_is_answered_with_its_code(tcp_server: Server, code: int) -> None:
    name = f"close-{code}"
    with Frames(tcp_server.address, f"/echo?name={name}") as socket:
        socket.put(CLOSE, struct.pack("!H", code) + "grüß dich".encode())
        got = socket.frame()
        assert (got.first, got.code) == (CLOSE, code)
        socket.closed()
    told = tcp_server.out.wait(rf'"disconnect".*"name": "{name}"')[0].string
    assert f'"code": {code}, "reason": "gr\\u00fc\\u00df dich"' in told


def test_a_close_without_a_code(tcp_server: Server) -> None:
    with Frames(tcp_server.address, "/echo?name=no-code") as socket:
        socket.goodbye(None)
    tcp_server.out.wait(r'"disconnect", "code": 1005, "reason": "?[^"]*"?, "name": "no-code"')


def test_nothing_is_read_behind_a_close(socket: Frames) -> None:
    socket.send(frame(CLOSE, b"\x03\xe8"), frame(PING, b"?"), frame(TEXT, b"more"), frame(0xFF))
    got = socket.frame()
    assert (got.first, got.code) == (CLOSE, 1000)
    socket.closed()


def test_a_close_within_a_message(socket: Frames) -> None:
    socket.send(frame(0x01, b"begun"), frame(CLOSE, b"\x03\xe8"))
    assert socket.frame().code == 1000
    socket.closed()


@pytest.mark.parametrize("code", [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535])
def test_codes_that_may_not_be_sent(open_socket: Open, code: int) -> None:
    open_socket().put(CLOSE, struct.pack("!H", code)).failed(1002)


def test_a_close_of_one_byte(socket: Frames) -> None:
    socket.put(CLOSE, b"\x03").failed(1002)


def test_a_reason_that_is_not_text(socket: Frames) -> None:
    socket.put(CLOSE, b"\x03\xe8\xce\xba\xff").failed(1007)


def test_the_longest_reason(socket: Frames) -> None:
    socket.put(CLOSE, b"\x03\xe8" + b"x" * 123)
    assert socket.frame().code == 1000
    socket.closed()


def test_the_application_closes(open_socket: Open) -> None:
    """Our Close frame, the client's answer, and then the server ends the connection (section 7.1.1)."""
    for query, code, reason in [("", 1000, ""), ("?code=4001&reason=enough", 4001, "enough")]:
        socket = open_socket(f"/close{query}")
        got = socket.frame()
        assert (got.first, got.code, got.reason) == (CLOSE, code, reason)
        assert socket.still_open(), "the client's answer is waited for"
        socket.put(CLOSE, struct.pack("!H", code))
        socket.closed()


def test_a_client_that_leaves_without_a_word(tcp_server: Server) -> None:
    """Section 7.1.5: 1006, if no Close frame came."""
    with Frames(tcp_server.address, "/echo?name=silent") as socket:
        socket.echoes()
    tcp_server.out.wait(r'"disconnect", "code": 1006, .*"name": "silent"')
    with Frames(tcp_server.address, "/echo?name=reset") as socket:
        socket.echoes()
        socket.reset()
    tcp_server.out.wait(r'"disconnect", "code": 1006, .*"name": "reset"')
