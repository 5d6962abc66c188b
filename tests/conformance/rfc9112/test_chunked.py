"""RFC 9112 section 7.1: the chunked coding, however its bytes are cut up on their way."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.conftest import Pool
from tests.harness import Server, with_each
from tests.harness.wire import chunked, request

HEAD = request("POST", "/body?how=read_n", [("Content-Type", "a/b"), ("Transfer-Encoding", "chunked")])
EXTENSIONS = b'3;a\r\nabc\r\n4;b=c;d="e f"\r\ndefg\r\n0;last\r\nX-Trailer: t\r\n\r\n'


def answer(server: Server, *parts: bytes) -> Any:
    with server.connect() as wire:
        for part in parts:
            wire.send(part)
        reply = wire.reply()
    assert reply.status == 200, reply.text
    return reply.json()


@with_each(
    ("coded", "body"),
    [
        (b"0\r\n\r\n", b""),
        (b"00000\r\n\r\n", b""),
        (b"1\r\nx\r\n0\r\n\r\n", b"x"),
        (b"0000A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        (b"a\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        (b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n"),
        (b"5\r\n0\r\n\r\n\r\n0\r\n\r\n", b"0\r\n\r\n"),
        (EXTENSIONS, b"abcdefg"),
        (b"1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", b"x"),
    ],
)
def test_chunked_body_forms(server: Server, coded: bytes, body: bytes) -> None:
    got = answer(server, HEAD + coded)
    assert got["length"] == len(body)
    assert got["sha256"] == hashlib.sha256(body).hexdigest()


@pytest.fixture(scope="module")
def splitting_server(pool: Pool) -> Server:
    return pool.get(
        worker_class="gthread", keep_alive=5, body_buffer_size=65536, env={"SCRIPT_NAME": ""}, transport="tcp"
    )


def test_chunked_body_split_in_two_anywhere(splitting_server: Server) -> None:
    """The second part comes when the server has had time to look at the first, as TCP_NODELAY makes it likely."""
    whole = HEAD + EXTENSIONS
    digest = hashlib.sha256(b"abcdefg").hexdigest()
    for at in range(1, len(whole)):
        got = answer(splitting_server, whole[:at], whole[at:])
        assert (got["length"], got["sha256"]) == (7, digest), f"split after {whole[:at][-20:]!r}"


def test_every_byte_by_itself(splitting_server: Server) -> None:
    got = answer(splitting_server, *(bytes([byte]) for byte in HEAD + EXTENSIONS))
    assert got["length"] == 7


def test_two_requests_split_anywhere(splitting_server: Server) -> None:
    """The end of one request and the beginning of the next may arrive together."""
    whole = (HEAD + EXTENSIONS) * 2
    with splitting_server.connect() as wire:
        for at in range(1, len(whole), 7):
            wire.send(whole[:at])
            wire.send(whole[at:])
            assert [wire.reply().json()["length"] for _ in range(2)] == [7, 7]


@with_each("size", [1, 2, 3, 16, 4095, 4096, 4097, 65537])
def test_chunks_of_any_size(server: Server, size: int) -> None:
    body = bytes(range(256)) * 300 if size > 3 else bytes(range(256)) * 20
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    got = answer(server, HEAD, chunked(pieces))
    assert (got["length"], got["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())


@with_each("value", ["chunked", "Chunked", "CHUNKED", " chunked ", "chunked\t"])
def test_the_name_of_the_coding(server: Server, value: str) -> None:
    head = request("POST", "/body?how=read_n", [("Content-Type", "a/b"), ("Transfer-Encoding", value)])
    assert answer(server, head + b"1\r\nx\r\n0\r\n\r\n")["length"] == 1
