"""wsgi.input: exact to the byte for every way to read and every way a body can arrive."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.conftest import BODY_BUFFER
from tests.harness import Server, with_each
from tests.harness.wire import chunked, request


def lines(size: int) -> bytes:
    """Lines of every length, bare CRs among them; no newline at the end."""
    out = bytearray()
    number = 0
    while len(out) < size:
        out += bytes([97 + number % 26]) * (number % 97) + (b"\r\n" if number % 3 else b"\n")
        number += 1
    return bytes(out[: size - 1]) + b"!" if size else b""


BODIES: dict[str, bytes] = {
    "empty": b"",
    "one": b"x",
    "newline": b"\n",
    "lines": b"first\nsecond\r\n\nlast",
    "kilobytes": lines(5000),
    "memory_exactly": lines(BODY_BUFFER),
    "memory_and_one": lines(BODY_BUFFER + 1),
    "spooled": lines(4 * BODY_BUFFER + 17),
}


def pieces_of(body: bytes) -> list[bytes]:
    return [body[at : at + 4099] for at in range(0, len(body), 4099)]


def by_length(body: bytes, target: str, version: str) -> bytes:
    return request("POST", target, [("Content-Type", "text/plain")], body, version=version)


def by_chunks(body: bytes, target: str, version: str) -> bytes:
    head = request("POST", target, [("Content-Type", "text/plain"), ("Transfer-Encoding", "chunked")], version=version)
    return head + chunked(pieces_of(body))


Framer = Callable[[bytes, str, str], bytes]


@pytest.fixture(
    params=[(by_length, "1.0"), (by_length, "1.1"), (by_chunks, "1.1")], ids=["length10", "length", "chunks"]
)
def framer(request: pytest.FixtureRequest) -> Callable[[bytes, str], bytes]:
    frame, version = request.param
    return lambda body, target: frame(body, target, version)


def report(server: Server, sent: bytes) -> Any:
    with server.connect() as wire:
        wire.send(sent)
        reply = wire.reply()
    assert reply.status == 200, server.log.text[-3000:]
    return reply.json()


def expect(got: Any, body: bytes) -> None:
    assert got["length"] == len(body)
    assert got["sha256"] == hashlib.sha256(body).hexdigest()
    assert got["types"] in (["bytes"], [])


@with_each("size", [1, 7, 4096, 10_000_000])
@with_each("body", BODIES)
def test_read_in_pieces(server: Server, framer: Callable[[bytes, str], bytes], body: bytes, size: int) -> None:
    if size < 7 and len(body) > 10000:
        return  # too many calls to be worth it
    got = report(server, framer(body, f"/body?how=read_n&size={size}"))
    expect(got, body)
    full = [size] * (len(body) // size) + ([len(body) % size] if len(body) % size else [])
    assert got["sizes"] == full[:2000]


@with_each("how", ["read", "read_minus_one", "read_none"])
@with_each("body", BODIES)
def test_read_everything(server: Server, framer: Callable[[bytes, str], bytes], body: bytes, how: str) -> None:
    expect(report(server, framer(body, f"/body?how={how}&raw")), body)


def test_read_of_nothing_takes_nothing(server: Server, framer: Callable[[bytes, str], bytes]) -> None:
    got = report(server, framer(b"abc", "/body?how=read_zero&size=10&raw"))
    assert got["sizes"] == [0, 3]


@with_each("how", ["readline", "iterate", "readlines"])
@with_each("body", BODIES)
def test_input_readline(server: Server, framer: Callable[[bytes, str], bytes], body: bytes, how: str) -> None:
    got = report(server, framer(body, f"/body?how={how}"))
    expect(got, body)
    assert got["sizes"] == [len(line) for line in body.splitlines(keepends=True) if line][:2000] or b"\r" in body
    assert got["sizes"] == [len(line) + 1 for line in body.split(b"\n")[:-1]][:2000] + (
        [len(body.split(b"\n")[-1])] if body.split(b"\n")[-1] and body.count(b"\n") < 2000 else []
    )


@with_each("size", [1, 2, 5, 1000])
def test_readline_with_a_bound(server: Server, framer: Callable[[bytes, str], bytes], size: int) -> None:
    body = BODIES["lines"]
    got = report(server, framer(body, f"/body?how=readline_n&size={size}"))
    expect(got, body)
    expected = []
    for line in body.split(b"\n"):
        whole = line + b"\n"
        expected += [whole[at : at + size] for at in range(0, len(whole), size)]
    expected[-1] = expected[-1].rstrip(b"\n")
    assert got["sizes"] == [len(piece) for piece in expected if piece]


def test_readlines_with_a_hint(server: Server, framer: Callable[[bytes, str], bytes]) -> None:
    """The hint may end the list early, on a line's end, never within one."""
    body = b"first\nsecond\nthird\n"
    got = report(server, framer(body, "/body?how=readlines_hint&size=7"))
    assert got["sizes"] in ([6, 7], [6, 7, 6])


def test_ways_to_read_may_be_mixed(server: Server, framer: Callable[[bytes, str], bytes]) -> None:
    body = b"first\nsecond\nthird\nfourth"
    got = report(server, framer(body, "/body?how=mixed&raw"))
    expect(got, body)
    assert got["sizes"] == [6, 3, 2, 2, 6, 6]


@with_each("name", ["empty", "lines", "spooled"])
def test_past_the_end_there_is_nothing(server: Server, framer: Callable[[bytes, str], bytes], name: str) -> None:
    got = report(server, framer(BODIES[name], "/body?how=past_end&size=100000"))
    expect(got, BODIES[name])
    assert got["sizes"][-3:] == [0, 0, 0]


def test_without_a_body_there_is_nothing(server: Server, version: str) -> None:
    for how in ("read_n", "readline", "iterate", "readlines"):
        expect(report(server, request("GET", f"/body?how={how}", version=version)), b"")


@with_each("how", ["read_n", "readline"])
def test_input_of_two_megabytes(server: Server, framer: Callable[[bytes, str], bytes], how: str) -> None:
    body = lines(2 * 1024 * 1024)
    expect(report(server, framer(body, f"/body?how={how}")), body)


def test_a_body_nobody_reads_does_not_become_the_next_request(keeping_server: Server) -> None:
    smuggled = b"GET /crash?when=call HTTP/1.1\r\nHost: t\r\n\r\n" * 50
    with keeping_server.connect() as wire:
        wire.send(request("POST", "/hello", [], smuggled), request("GET", "/pid"))
        assert wire.reply().body == b"Hello\n"
        assert wire.reply().body.isdigit()


def test_trailers_are_never_merged(server: Server) -> None:
    head = request("POST", "/echo", [("Transfer-Encoding", "chunked"), ("Trailer", "X-Admin")])
    with server.connect() as wire:
        wire.send(head, chunked([b"abc"], b"X-Admin: yes\r\n"))
        got = wire.reply().json()
    assert "HTTP_X_ADMIN" not in got
