"""The response body: any iterable of bytes, sent piece by piece and never mixed up."""

from __future__ import annotations

import pytest

from tests.harness import Server, with_each
from tests.harness.front_end_client import needs_an_end
from tests.harness.wire import Short

WHOLE = [
    "list",
    "tuple",
    "single",
    "generator",
    "iterator",
    "custom",
    "sized",
    "lying",
    "old",
    "set",
    "dict",
    "bytes_subclass",
    "empty_pieces",
    "empty_first",
]
EMPTY = ["empty_list", "empty_tuple", "empty_generator", "only_empty"]
VALIDATED = with_each("raw", {"validated": "", "bare": "&raw"})


@with_each("kind", WHOLE)
@VALIDATED
def test_response_of_any_iterable(server: Server, version: str, kind: str, raw: str) -> None:
    if kind == "bytes_subclass" and not raw:
        return  # the validator takes bytes itself only
    with server.connect() as wire:
        reply = wire.get(f"/iterables?kind={kind}{raw}", version=version)
    assert (reply.status, reply.body) == (200, b"onetwothree")


@with_each("kind", EMPTY)
@VALIDATED
def test_an_empty_body_is_a_response(server: Server, version: str, kind: str, raw: str) -> None:
    with server.connect() as wire:
        reply = wire.get(f"/iterables?kind={kind}{raw}", version=version)
    assert (reply.status, reply.body) == (200, b"")


@pytest.mark.beyond_reference("the head is sent before the first piece is looked at")
def test_bytes_are_an_iterable_of_numbers(server: Server) -> None:
    """A bare bytes object yields ints: an error of the application, seen before anything is sent."""
    assert server.get("/iterables?kind=bytes&raw").status == 500


def test_many_small_pieces(server: Server, version: str) -> None:
    with server.connect() as wire:
        assert wire.get("/iterables?kind=many", version=version).body == b"x" * 3000


def test_a_stream_without_length(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.get("/stream?count=5&size=100000")
    assert reply.framing == "chunked"
    assert reply.body == b"".join(bytes([97 + n]) * 100000 for n in range(5))


def test_a_stream_without_length_to_an_old_client(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.get("/stream?count=5&size=100000", version="1.0")
    assert reply.framing == "close"
    assert len(reply.body) == 500000


def test_a_piece_is_sent_before_the_next_is_made(server: Server) -> None:
    """PEP 3333: the server must not delay a block."""
    with server.connect() as wire:
        wire.send(b"GET /stream?count=2&size=4&pause=0.5 HTTP/1.1\r\nHost: t\r\n\r\n")
        wire.sock.settimeout(0.45)
        while b"aaaa" not in wire.unread:
            wire.unread += wire.sock.recv(65536)
        assert b"bbbb" not in wire.unread
        wire.sock.settimeout(5)
        assert wire.reply().body == b"aaaabbbb"


@pytest.mark.beyond_reference("the head is sent before the first piece is looked at")
@with_each("kind", ["str_list", "str_generator", "str", "int", "none_piece", "none", "number"])
def test_anything_but_bytes_is_an_error(server: Server, version: str, kind: str) -> None:
    seen = len(server.log.matching("TypeError"))
    with server.connect() as wire:
        assert wire.get(f"/badtypes?kind={kind}", version=version).status == 500
    server.log.wait("TypeError", count=seen + 1)


def test_anything_but_bytes_after_the_head_ends_the_connection(server: Server) -> None:
    needs_an_end(server)
    with server.connect() as wire, pytest.raises(Short):
        wire.get("/badtypes?kind=late")
