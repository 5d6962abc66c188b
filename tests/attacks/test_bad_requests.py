"""Each bad request gets its status at once and the end of its connection; the application never hears of it."""

from __future__ import annotations

import pytest

from tests.attacks.bad_requests import ALL, CHUNKS, Bad, get
from tests.attacks.conftest import unharmed
from tests.harness import REFERENCE, Server, Wire, with_each
from tests.harness.wire import Short, request

# What stands behind a refused request on the same connection would be the smuggled one.
SMUGGLED = b"GET /crash?when=call HTTP/1.1\r\nHost: t\r\n\r\n"
CASES = {bad.name: bad for bad in ALL if not (REFERENCE and bad.reference)}
"""`Bad.reference` says what the reference server does with the others."""
SHORT = {name: bad for name, bad in CASES.items() if len(bad.sent) < 400 and bad not in CHUNKS}


def send(wire: Wire, bad: Bad, *parts: bytes) -> None:
    try:
        wire.send(*parts)
    except ConnectionError:
        assert len(bad.sent) > 65536, "only an endless request may be cut off while it is sent"


def refused(wire: Wire, bad: Bad) -> None:
    reply = wire.reply()
    assert reply.status == bad.status, reply.text
    assert reply.closes
    wire.closed()


@with_each("bad", CASES)
def test_a_bad_request_is_refused(any_server: Server, bad: Bad) -> None:
    with unharmed(any_server) as server:
        before = server.calls()
        with server.connect(timeout=5) as wire:
            send(wire, bad, bad.sent)
            refused(wire, bad)
        assert server.calls() == before


WITHIN = {
    "a_hundred_fields": get(*(b"X-%d: y" % n for n in range(99))),
    "a_field_of_8190_bytes": get(b"X-A: " + b"y" * (8190 - 7)),
    "a_line_of_4094_bytes": get(line=b"GET /hello?" + b"x" * (4094 - 20) + b" HTTP/1.1"),
}


@with_each("sent", WITHIN)
def test_what_is_just_within_a_limit_is_served(server: Server, sent: bytes) -> None:
    """ALL has the same with one more."""
    with server.connect() as wire:
        wire.send(sent)
        assert wire.reply().status == 200


@with_each("bad", CASES)
def test_refused_behind_a_good_request_and_nothing_is_smuggled(any_server: Server, bad: Bad) -> None:
    with unharmed(any_server) as server:
        before = server.calls()
        with server.connect(timeout=5) as wire:
            send(wire, bad, request("GET", "/hello"), bad.sent, SMUGGLED)
            first = wire.reply()
            assert first.status == 200
            if first.closes:  # a sync worker of the reference server never looks at what follows
                wire.closed()
            else:
                refused(wire, bad)
        assert server.calls() == before + 1


@with_each("bad", SHORT)
def test_refused_however_slowly_it_comes(any_server: Server, bad: Bad) -> None:
    """Byte by byte: the same answer, perhaps before the request is complete."""
    with unharmed(any_server) as server, server.connect(timeout=5) as wire:
        try:
            for byte in bad.sent:
                wire.send(bytes([byte]))
        except ConnectionError:
            pass  # it was refused before its end
        try:
            assert wire.reply().status == bad.status
        except (Short, ConnectionError):
            pytest.fail("the refusal could not be read")


@with_each("field", ["Connection: close", "Connection: keep-alive", "Upgrade: h2c"])
def test_fields_that_mean_nothing_to_a_refusal(server: Server, field: str) -> None:
    with server.connect() as wire:
        wire.send(f"GET /hello HTTP/1.1\r\n{field}\r\nHost: t\r\nHost: u\r\n\r\n".encode())
        assert wire.reply().status == 400
        wire.closed()


def test_the_log_says_who_and_why(server: Server) -> None:
    with server.connect() as wire:
        wire.send(b"GET /hello HTTP/9.9\r\n\r\n")
        assert wire.reply().status == 400
    server.log.wait(r"\[WARNING\] Invalid request from ip=127.0.0.1: Invalid HTTP Version")
