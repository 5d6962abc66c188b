"""100 Continue and 103 Early Hints."""

from __future__ import annotations

import pytest

from tests.harness import Server
from tests.harness.wire import chunked, request

EXPECT = ("Expect", "100-continue")


def test_continue_comes_before_the_body(server: Server) -> None:
    with server.connect() as wire:
        wire.send(request("POST", "/body", [EXPECT, ("Content-Length", "5"), ("Content-Type", "a/b")]))
        assert wire.interim().status == 100
        wire.send(b"abcde")
        assert wire.reply().json()["length"] == 5


def test_continue_for_a_chunked_body(server: Server) -> None:
    with server.connect() as wire:
        wire.send(request("POST", "/body", [EXPECT, ("Transfer-Encoding", "chunked"), ("Content-Type", "a/b")]))
        assert wire.interim().status == 100
        wire.send(chunked([b"abc", b"de"]))
        assert wire.reply().json()["length"] == 5


def test_continue_is_one_line_and_no_fields(server: Server) -> None:
    with server.connect() as wire:
        wire.send(request("POST", "/body", [EXPECT, ("Content-Length", "1"), ("Content-Type", "a/b")]))
        assert wire.interim().fields == []
        wire.send(b"x")
        assert wire.reply().status == 200


def test_an_impatient_client_may_send_the_body_at_once(server: Server) -> None:
    with server.connect() as wire:
        wire.send(request("POST", "/body", [EXPECT, ("Content-Type", "a/b")], b"abcde"))
        reply = wire.reply()
    assert reply.json()["length"] == 5
    assert [interim.status for interim in reply.interims] in ([], [100])


def test_an_old_client_gets_no_continue(server: Server) -> None:
    with server.connect() as wire:
        wire.send(request("POST", "/body", [EXPECT, ("Content-Type", "a/b")], b"abcde", version="1.0"))
        reply = wire.reply()
    assert reply.json()["length"] == 5
    assert reply.interims == []


@pytest.mark.beyond_reference("100 is sent although no body follows")
def test_no_continue_where_no_body_is_announced(server: Server) -> None:
    with server.connect() as wire:
        assert wire.get("/hello", EXPECT).interims == []


def test_early_hints(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.get("/hints?count=2")
    assert reply.body == b"body"
    assert [interim.status for interim in reply.interims] == [103, 103]
    assert [interim.get("link") for interim in reply.interims] == [
        "</0.css>; rel=preload",
        "</1.css>; rel=preload",
    ]
    assert reply.get("link") is None


def test_no_early_hints_for_an_old_client(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.get("/hints?count=2", version="1.0")
    assert (reply.body, reply.interims) == (b"body", [])


def test_early_hints_inject_nothing(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.get("/hints?count=0&bad=1")
    everything = [*reply.fields, *(field for interim in reply.interims for field in interim.fields)]
    assert "X-Injected" not in dict(everything)
