"""ASGI WebSocket specification: what the application is told, and what it may say."""

from __future__ import annotations

import ast
import re
import sys
import uuid
from typing import Any

import pytest

from tests.conformance.asgi3.play import NOTICE
from tests.conformance.rfc6455.conftest import Open, is_by_http2
from tests.conftest import Pool
from tests.harness import Server, Wire, until
from tests.harness.frames import BINARY, CLOSE, KEY, TEXT, Frames, frame, handshake


def scope_of(server: Server, target: str, *fields: tuple[str, str]) -> dict[str, Any]:
    with Frames(server.address, target, *fields) as socket:
        told = socket.message()
        assert isinstance(told, str)
        scope: dict[str, Any] = ast.literal_eval(told.replace(NOTICE, "None"))
        return scope


def test_websocket_scope(tcp_server: Server) -> None:
    scope = scope_of(
        tcp_server,
        "/the%2Dscope?a=%20b",
        ("Sec-WebSocket-Protocol", "one, two"),
        ("Cookie", "c=1"),
        ("X-Twice", "1"),
        ("x-twice", "2"),
    )
    assert scope["type"] == "websocket"
    assert scope["asgi"]["version"] == "3.0"
    assert tuple(map(int, scope["asgi"]["spec_version"].split("."))) >= (2, 4)
    assert scope["http_version"] == ("2" if is_by_http2(tcp_server) else "1.1")
    assert scope["scheme"] == "ws"
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == ("/the-scope", b"/the%2Dscope", b"a=%20b")
    assert scope["root_path"] == ""
    assert scope["subprotocols"] == ["one", "two"]
    assert scope["client"][0] == "127.0.0.1"
    assert isinstance(scope["client"][1], int)
    assert scope["server"] == ("127.0.0.1", tcp_server.port)
    assert scope["state"] == {"answer": 42}
    assert "websocket.http.response" in scope["extensions"]
    assert "method" not in scope
    headers = scope["headers"]
    assert ((b"sec-websocket-key", KEY.encode()) in headers) != is_by_http2(tcp_server)  # RFC 8441, section 5
    assert [value for name, value in headers if name == b"x-twice"] == [b"1", b"2"]
    assert all(name == name.lower() for name, _ in headers)


def test_no_subprotocols_is_an_empty_list(server: Server) -> None:
    assert scope_of(server, "/the-scope")["subprotocols"] == []


def test_websocket_receive(open_socket: Open) -> None:
    """ "The default value is missing or None": only what came is named."""
    socket = open_socket("/events")
    socket.put(TEXT, "grüß".encode())
    assert socket.message() == repr([("text", "grüß"), ("type", "websocket.receive")])
    socket.put(BINARY, b"\x00\xff")
    assert socket.message() == repr([("bytes", b"\x00\xff"), ("type", "websocket.receive")])
    socket.put(TEXT)
    assert socket.message() == repr([("text", ""), ("type", "websocket.receive")])
    socket.goodbye()


def test_fields_of_accept(open_socket: Open) -> None:
    socket = open_socket("/fields")
    assert socket.response.get("x-one") == "1"
    assert socket.response.all("set-cookie") == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("sec-websocket-protocol", "a"), ("sec-websocket-accept", "a"), ("x a", "b"), ("x-a", "b%0D%0AEvil:%20c")],
)
def test_bad_fields_of_accept(server: Server, name: str, value: str) -> None:
    with Wire(server.address) as wire:
        wire.send(handshake(f"/bad-field?name={name.replace(' ', '%20')}&value={value}"))
        reply = wire.reply()
        assert reply.status == 500
        assert reply.get("evil") is None
    server.log.wait(r"Error handling request (GET|CONNECT) /bad-field")


def test_websocket_handshake_refused(server: Server) -> None:
    """Closing before accepting is an HTTP 403. Frames that were sent too early are no requests."""
    with Wire(server.address) as wire:
        wire.send(handshake("/reject"), frame(TEXT, b"GET /hello HTTP/1.1\r\nHost: t\r\n\r\n"))
        reply = wire.reply()
        assert (reply.status, reply.get("upgrade")) == (403, None)
        wire.ended()


def test_why_a_handshake_is_refused_is_not_sent_and_may_be_anything(tcp_server: Server) -> None:
    with Wire(tcp_server.address) as wire:
        wire.send(handshake("/reject?odd=yes"))
        assert wire.reply().status == 403
    assert not tcp_server.log.matching(r"Error handling request \w+ /reject")


def test_denied_with_a_response(tcp_server: Server) -> None:
    with Wire(tcp_server.address) as wire:
        wire.send(handshake("/deny?status=401"))
        reply = wire.reply()
        assert (reply.status, reply.body, reply.get("www-authenticate")) == (401, b"who are you", "Basic")
        assert reply.closes
        wire.closed()
    tcp_server.out.wait(r'"denied", "event": "websocket.disconnect"')


@pytest.mark.parametrize("target", ["/return-at-once", "/raise-at-once"])
def test_websocket_application_that_sends_no_answer(server: Server, target: str) -> None:
    with Wire(server.address) as wire:
        wire.send(handshake(target))
        assert wire.reply().status == 500
        wire.closed()
    server.log.wait(f"Error handling request (GET|CONNECT) {target}")


def test_returning_closes(open_socket: Open) -> None:
    socket = open_socket("/return-open")
    assert socket.message() == "last words"
    got = socket.frame()
    assert (got.first, got.code) == (CLOSE, 1000)


def test_raising_closes(open_socket: Open, server: Server) -> None:
    got = open_socket("/raise-open").frame()
    assert (got.first, got.code) == (CLOSE, 1011)
    server.log.wait("RuntimeError: after accept")


@pytest.mark.parametrize("event", ["websocket.send", "http.response.start", "websocket.http.response.body", "x"])
def test_events_before_accept(tcp_server: Server, event: str) -> None:
    with Wire(tcp_server.address) as wire:
        wire.send(handshake(f"/before-accept?event={event}"))
        assert wire.reply().status == 500


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("type", "RuntimeError"),
        ("accept", "RuntimeError"),
        ("nothing", "ValueError"),
        ("both", "ValueError"),
        ("text", "TypeError"),
        ("bytes", "TypeError"),
        ("code", "ValueError"),
        ("small", "out of range"),
        ("huge", "out of range"),
        ("word", "TypeError"),
        ("reason", "TypeError"),
    ],
)
def test_events_that_are_wrong(open_socket: Open, kind: str, error: str) -> None:
    assert open_socket(f"/wrong-event?kind={kind}").message() == error


def test_sending_after_the_application_has_closed(tcp_server: Server) -> None:
    with Frames(tcp_server.address, "/close-and-send") as socket:
        assert socket.frame().code == 1000
        tcp_server.out.wait('"raised", "os_error": false, "kind": "RuntimeError"')


def test_sending_after_the_client_has_left(tcp_server: Server) -> None:
    """Since 2.4: "the server should raise an OSError"."""
    with Frames(tcp_server.address, "/send-after-leaving") as socket:
        socket.goodbye()
    tcp_server.out.wait('"raised", "os_error": true, "kind": "ClientDisconnected"')


@pytest.mark.parametrize("what", ["receive", "send"])
def test_who_asks_again_and_again_lets_others_have_their_turn(pool: Pool, what: str) -> None:
    """The client is gone: the first time that is told at once, later after the loop's other callbacks."""
    server = pool.get("sockets:application", worker_class="asgi", asgi_disconnect_grace_period=1)
    with Frames(server.address, f"/again-and-again?what={what}") as socket:
        server.out.wait(f'"begins", "name": "{what}"')
        socket.sock.close()
    for _ in range(5):
        assert server.get("/").status == 200
    server.out.wait(f'"ended", "name": "{what}", "kind": "CancelledError"')


def test_who_was_told_that_its_client_has_left_may_clean_up(tcp_server: Server) -> None:
    """By default only a WebSocket that was not told, or asks again, is ended when the grace is over."""
    told, unaware = uuid.uuid4().hex, uuid.uuid4().hex
    with Frames(tcp_server.address, f"/clean-up?name={told}") as one:
        one.goodbye()
    with Frames(tcp_server.address, f"/silent?name={unaware}") as other:
        other.sock.close()
    tcp_server.out.wait(f'"silence is over", "name": "{unaware}"')
    tcp_server.log.wait(r"\[INFO\] GET /silent: cancelled: client disconnected 3 s ago")
    assert not tcp_server.out.matching(f'"cleaned up", "name": "{told}"')
    tcp_server.get(f"/open/{told}")
    tcp_server.out.wait(f'"cleaned up", "name": "{told}"')


HOWS = ["same", "cause", "context", "own", *(["group"] if sys.version_info >= (3, 11) else [])]


@pytest.mark.parametrize("how", HOWS)
def test_what_comes_of_a_client_that_left_is_no_error(tcp_server: Server, how: str) -> None:
    """Frameworks make exceptions of their own of it (Starlette: WebSocketDisconnect); others are logged."""
    marker = uuid.uuid4().hex
    with Frames(tcp_server.address, f"/raise-later?how={how}&marker={marker}") as socket:
        socket.goodbye()
    # In the same order in which they come: what is not logged has no line to wait for.
    with Frames(tcp_server.address, f"/raise-later?marker={marker}-own") as socket:
        socket.goodbye()
    tcp_server.log.wait(f"RuntimeError: {marker}-own")
    log = tcp_server.log.text
    record = log[log.rindex("[ERROR]", 0, log.index(f"{marker}-own")) : log.index(f"{marker}-own")]
    assert record.startswith("[ERROR] Error handling request GET /raise-later")
    assert record.count("Traceback") == 1
    assert 'sockets.py", line ' in record
    assert bool(re.search(rf"{marker}\b(?!-own)", log)) == (how == "own")


def test_websocket_used_by_two_tasks(open_socket: Open) -> None:
    """One receives while the other sends."""
    socket = open_socket("/ticker")
    assert [socket.message() for _ in range(3)] == ["tick 0", "tick 1", "tick 2"]
    socket.echoes()
    socket.goodbye()


def test_receive_can_be_cancelled(open_socket: Open) -> None:
    """No message is lost with it."""
    socket = open_socket("/cancelled")
    assert [socket.message() for _ in range(3)] == ["nothing yet"] * 3
    for number in range(10):
        socket.echoes(str(number))
    socket.goodbye()


def test_several_answers_to_a_message(open_socket: Open) -> None:
    socket = open_socket("/many?count=50")
    socket.send(frame(TEXT, b"a"), frame(TEXT, b"b"))
    assert [socket.message() for _ in range(100)] == [f"{name} {number}" for name in "ab" for number in range(50)]


def test_a_client_that_leaves_before_it_is_accepted(tcp_server: Server) -> None:
    with Wire(tcp_server.address) as wire:
        wire.send(handshake("/gated-accept?name=early"))
        tcp_server.out.wait('"asked", "name": "early"')
        assert wire.still_open()
        if is_by_http2(tcp_server):  # the relay is to have said so before the gate opens
            wire.finish_sending().ended()
    until(lambda: tcp_server.get("/open/early").status == 200, "the gate opens")
    tcp_server.out.wait('"too late", "kind": "ClientDisconnected", "name": "early"')


def test_frames_that_wait_for_accept(tcp_server: Server) -> None:
    with Wire(tcp_server.address) as wire:
        wire.send(handshake("/gated-accept?name=late"), frame(TEXT, b"early"))
        assert wire.still_open()
        wire.send(frame(TEXT, b"later"))
        assert tcp_server.get("/open/late").status == 200
        assert wire._head(False).status == 101
        assert wire._exactly(14, "two messages") == b"\x81\x05early\x81\x05later"


def test_a_handshake_by_a_front_end(tcp_server: Server) -> None:
    fields = (("X-Forwarded-Proto", "wss"), ("X-Forwarded-For", "[2001:db8::1]:443"), ("X_Token", "b"))
    scope = scope_of(tcp_server, "/the-scope", *fields)
    assert (scope["scheme"], tuple(scope["client"])) == ("wss", ("2001:db8::1", 443))
    assert (b"x_token", b"b") in [tuple(pair) for pair in scope["headers"]]
