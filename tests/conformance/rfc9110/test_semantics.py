"""RFC 9110: methods, expectations and statuses as far as they are the server's business."""

from __future__ import annotations

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

import pytest

from tests.harness import Server, with_each
from tests.harness.http2_client import Http2Client, has_no_such
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


@with_each("method", ["GET", "DELETE", "OPTIONS"])
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


MISTAKES = {
    "host twice": ("/hello", "Host: t\r\nHost: u\r\n", 400),
    "no host": ("/hello", "", 400),
    "no target": ("hello", "Host: t\r\n", 400),
    "a version": ("/hello HTTP/9.9", "Host: t\r\n", 400),
    "long line": ("/" + "x" * 5000, "Host: t\r\n", 414),
    "many fields": ("/hello", "Host: t\r\n" + "X: y\r\n" * 101, 431),
    "expectation": ("/hello", "Host: t\r\nExpect: miracle\r\n", 417),
    "coding": ("/hello", "Host: t\r\nTransfer-Encoding: xchunked\r\n", 501),
    "chunk": ("/body", "Host: t\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\nzz", 400),
}


def mistaken(method: str, target: str, fields: str) -> bytes:
    line = f"{method} {target}" if "HTTP/" in target else f"{method} {target} HTTP/1.1"
    return f"{line}\r\n{fields}\r\n".encode()


@pytest.mark.beyond_reference("pages without Date, and with content for HEAD")
@with_each(("target", "fields", "status"), MISTAKES)
def test_an_error_page_to_head_is_that_to_get_without_content(
    server: Server, target: str, fields: str, status: int
) -> None:
    """Section 9.3.2: "the server MUST NOT send content in the response"; section 6.6.1: Date in all 4xx."""
    replies = {}
    for method in ("GET", "HEAD"):
        with server.connect() as wire:
            wire.send(mistaken(method, target, fields))
            reply = replies[method] = wire.reply(method)
            wire.closed()
        assert reply.status == status
        age = datetime.now(timezone.utc) - parsedate_to_datetime(str(reply.get("date")))
        assert abs(age.total_seconds()) < 60
    get, head = replies["GET"], replies["HEAD"]
    assert get.body
    assert not head.body
    volatile = ("date", "content-length") if target == "hello" else ("date",)  # the page shows the line
    assert [f for f in head.fields if f[0].lower() not in volatile] == [
        f for f in get.fields if f[0].lower() not in volatile
    ]
    assert int(str(head.get("content-length"))) > 0


@pytest.mark.beyond_reference("pages without Date, and with content for HEAD")
def test_the_page_of_an_application_that_fails(server: Server) -> None:
    for method in ("GET", "HEAD"):
        with server.connect() as wire:
            wire.send(request(method, "/crash?when=call&raw"))
            reply = wire.reply(method)
            wire.closed()
        assert reply.status == 500
        assert bool(reply.body) == (method == "GET")
        assert int(str(reply.get("content-length"))) > 0
        assert parsedate_to_datetime(str(reply.get("date"))).utcoffset() is not None


@pytest.mark.beyond_reference("it is sent with content")
@with_each("length", {"none": "", "given": "&Content-Length=4"})
def test_a_reset_has_no_content(keeping_server: Server, version: str, length: str) -> None:
    """Section 15.3.6: "a server MUST NOT generate content in a 205 response"; so its length is 0, and known."""
    with keeping_server.connect() as wire:
        for method in ("GET", "HEAD"):
            fields = [("Connection", "keep-alive")]
            wire.send(request(method, f"/fields?raw&status=205%20Reset%20Content{length}", fields, version=version))
            reply = wire.reply(method)
            assert (reply.status, reply.body) == (205, b"")
            assert reply.all("content-length") == ["0"]
            assert reply.get("transfer-encoding") is None
            if reply.closes:
                return
        assert wire.get("/hello", version=version).body == b"Hello\n"


@pytest.mark.beyond_reference("Upgrade is sent for WebSockets only, and without the option")
@with_each(("status", "upgrade"), [("426%20Upgrade%20Required", "h2c"), ("200%20OK", "websocket")])
def test_an_upgrade_is_an_option_of_its_connection(server: Server, status: str, upgrade: str) -> None:
    """Section 7.8: "A sender of Upgrade MUST also send an "Upgrade" connection option"; section 15.5.22."""
    if server.wire_type is Http2Client:
        has_no_such()
    reply = server.get(f"/fields?raw&status={status}&Upgrade={upgrade}")
    assert reply.get("upgrade") == upgrade
    options = [option.strip().lower() for value in reply.all("connection") for option in value.split(",")]
    assert "upgrade" in options


def test_an_error_page_escapes_what_it_quotes(server: Server) -> None:
    with server.connect() as wire:
        if isinstance(wire, Http2Client):
            has_no_such()  # such a name is a stream error: it is reset, without a page
        wire.send(b"GET /hello HTTP/1.1\r\nHost: t\r\n<script>: x\r\n\r\n")
        assert b"<script>" not in wire.reply().body
