"""RFC 9110: methods, expectations and statuses as far as they are the server's business."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import pytest

from tests.harness import Server
from tests.harness.wire import request


def test_head_is_get_without_a_body(server: Server, version: str) -> None:
    with server.connect() as wire:
        got = wire.ask("GET", "/hello", version=version)
    with server.connect() as wire:
        wire.send(request("HEAD", "/hello", [("Connection", "close")], version=version))
        head = wire.reply("HEAD")
        wire.closed()
    volatile = ("date", "connection")
    assert [f for f in head.fields if f[0].lower() not in volatile] == [
        f for f in got.fields if f[0].lower() not in volatile
    ]


def test_unknown_methods_are_the_applications_business(server: Server) -> None:
    if "aiohttp" in server.argv:
        pytest.skip("the parser of aiohttp knows none")
    with server.connect() as wire:
        assert wire.ask("BREW", "/echo").json()["REQUEST_METHOD"][1] == "BREW"


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
def test_any_method_may_have_a_body(server: Server, method: str) -> None:
    with server.connect() as wire:
        reply = wire.ask(method, "/body", [("Content-Type", "a/b")], b"abc")
    assert reply.json()["length"] == 3


def test_an_expectation_that_cannot_be_met(server: Server) -> None:
    before = server.calls()
    with server.connect() as wire:
        wire.send(request("POST", "/hello", [("Expect", "miracle"), ("Content-Length", "3")]))
        reply = wire.reply()
        assert (reply.status, reply.reason) == (417, "Expectation Failed")
        wire.closed()
    assert server.calls() == before


def test_an_expectation_in_any_case(server: Server) -> None:
    with server.connect() as wire:
        wire.send(
            request("POST", "/body", [("Expect", "100-Continue"), ("Content-Type", "a/b"), ("Content-Length", "1")])
        )
        assert wire.interim().status == 100
        wire.send(b"x")
        assert wire.reply().json()["length"] == 1


def test_the_date_is_now(server: Server) -> None:
    first = parsedate_to_datetime(str(server.get("/hello").get("date")))
    second = parsedate_to_datetime(str(server.get("/hello").get("date")))
    assert first.utcoffset() is not None
    assert 0 <= (second - first).total_seconds() <= 2


def test_an_error_page_is_complete(server: Server) -> None:
    with server.connect() as wire:
        wire.send(b"BAD REQUEST LINE HERE\r\n\r\n")
        reply = wire.reply()
        wire.closed()
    assert (reply.version, reply.status, reply.reason) == ("HTTP/1.1", 400, "Bad Request")
    assert reply.framing == "length"
    assert reply.get("content-type") == "text/html"
    assert reply.closes
    assert b"<title>Bad Request</title>" in reply.body


def test_an_error_page_escapes_what_it_quotes(server: Server) -> None:
    with server.connect() as wire:
        wire.send(b"GET /hello HTTP/1.1\r\nHost: t\r\n<script>: x\r\n\r\n")
        assert b"<script>" not in wire.reply().body
