"""The tornado example does what its page says."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.conftest import Pool
from tests.harness import Server
from tests.harness.needs import needs
from tests.harness.wire import chunked

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tornado_app"

needs("tornado")


@pytest.fixture
def server(pool: Pool) -> Server:
    return pool.get("app:app", chdir=EXAMPLE, worker_class="tornado")


def test_tornado_hello(server: Server) -> None:
    assert server.get("/").body == b"Hello, world!\n"
    assert server.get("/you").body == b"Hello, you!\n"


def test_the_countdown_comes_line_by_line(server: Server) -> None:
    assert server.get("/countdown").chunks == [b"5\n", b"4\n", b"3\n", b"2\n", b"1\n"]


def test_a_digest_of_an_upload(server: Server) -> None:
    pieces = [bytes([number]) * 50_000 for number in range(100)]
    with server.connect() as wire:
        wire.send(b"PUT /digest HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n", chunked(pieces))
        assert wire.reply().body == hashlib.sha256(b"".join(pieces)).hexdigest().encode() + b"\n"


def test_tornado_websocket_chat(server: Server) -> None:
    client = pytest.importorskip("websockets.sync.client")
    uri = f"ws://127.0.0.1:{server.port}/chat"
    with client.connect(uri) as one, client.connect(uri) as two:
        one.send("hello")
        two.send("all")
        for ear in (one, two):
            assert {ear.recv(timeout=30), ear.recv(timeout=30)} == {"hello", "all"}
