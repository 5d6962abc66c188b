"""examples/aiohttp_app does what its page says."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import Server, until
from tests.harness.needs import needs
from tests.harness.wire import request

AIOHTTP_APP = Path(__file__).resolve().parents[2] / "examples" / "aiohttp_app"

needs("aiohttp")
client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("app:make_app", chdir=AIOHTTP_APP, worker_class="aiohttp") as server:
        yield server


def test_aiohttp_pages(server: Server) -> None:
    assert b"Hello from aiohttp" in server.get("/").body
    assert server.get("/worker").json()["pid"] == server.worker_pid()
    until(lambda: server.get("/worker").json()["ticks"] > 1, "the clock ticks")


def test_aiohttp_upload(server: Server) -> None:
    body = os.urandom(5_000_000)
    with server.connect() as wire:
        found = wire.ask("PUT", "/digest", (), body).json()
    assert found == {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body)}


def test_aiohttp_source_download(server: Server) -> None:
    reply = server.get("/source")
    assert reply.body == (AIOHTTP_APP / "app.py").read_bytes()
    assert reply.get("Content-Disposition") == 'attachment; filename="app.py"'


def test_aiohttp_clock_event_stream(server: Server) -> None:
    with server.connect() as wire:
        wire.send(request("GET", "/clock"))
        seen = b""
        while seen.count(b"\ndata: ") < 3:
            seen += wire.sock.recv(65536)
    assert b"Content-Type: text/event-stream\r\n" in seen


def test_who_is_connected_is_told_of_the_end() -> None:
    with Server("app:make_app", chdir=AIOHTTP_APP, worker_class="aiohttp.GunicornWebWorker") as server:
        with client.connect(f"ws://127.0.0.1:{server.port}/echo", proxy=None) as socket:
            socket.send("hello")
            assert socket.recv(5) == "hello"
            server.signal(signal.SIGTERM)
            with pytest.raises(exceptions.ConnectionClosed) as ended:
                socket.recv(10)
        assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (1001, "the server stops")
        assert server.wait_exit() == 0
