"""WebSockets in a running server: the log, pings, leaving, memory, and the settings that bear on them."""

from __future__ import annotations

import asyncio
import re
import signal
from contextlib import ExitStack

import pytest
import websockets
from websockets.asyncio.client import connect

from tests.conftest import Pool
from tests.harness import Server, proc, until
from tests.harness.frames import CLOSE, DEFLATE, PING, PONG, TEXT, Frames, frame, handshake

APP = "sockets:application"
BYTES_EACH = 24 * 1024


def test_access_log_has_a_line_for_each_websocket(pool: Pool) -> None:
    """When it has ended: 101, the bytes of the frames sent, and how long it lived."""
    server = pool.get(
        APP, worker_class="asgi", access_logfile="-", access_logformat="%(r)s %(s)s %(B)s %(D)s %({upgrade}i)s"
    )
    with Frames(server.address, "/echo?name=logged") as socket:
        socket.echoes("x" * 100)
        assert not server.out.matching("GET /echo")
        socket.goodbye()
    (line,) = server.out.wait(r"GET /echo\?name=logged HTTP/1.1 101 (\d+) (\d+) websocket$")
    # A frame of 100 bytes, and a Close frame with a code.
    assert int(line[1]) == 102 + 4
    for target, status in [("/reject", 403), ("/deny?status=418", 418), ("/raise-at-once", 500)]:
        with server.connect() as wire:
            wire.send(handshake(target))
            assert wire.reply().status == status
        server.out.wait(rf"^GET {re.escape(target)} HTTP/1.1 {status} ")
    with server.connect() as wire:
        wire.send(handshake("/bad", drop=("Sec-WebSocket-Key",)))
        assert wire.reply().status == 400
    server.out.wait(r"^GET /bad HTTP/1.1 400 ")
    server.log.wait("Invalid request from ip=127.0.0.1.*: WebSocket handshake: no Sec-WebSocket-Key")


def test_silence_is_asked_about_and_ended(pool: Pool) -> None:
    server = pool.get(APP, worker_class="asgi", websocket_ping_interval=0.2, websocket_ping_timeout=0.3)
    with Frames(server.address, "/echo?name=silent") as socket:
        for _ in range(2):
            ping = socket.frame()
            assert ping.first == PING
            socket.put(PONG, ping.payload)
        assert socket.frame().first == PING
        got = socket.frame()
        assert (got.first, got.code, got.reason) == (CLOSE, 1011, "keepalive ping timeout")
        socket.closed()
    server.out.wait('"disconnect", "code": 1006, "reason": "keepalive ping timeout", "name": "silent"')


def test_websocket_compression_switched_off(pool: Pool) -> None:
    server = pool.get(APP, worker_class="asgi", no_websocket_compression=True)
    with Frames(server.address, "/echo", DEFLATE) as socket:
        assert socket.response.get("sec-websocket-extensions") is None


def test_websocket_messages_of_any_size(pool: Pool) -> None:
    server = pool.get(APP, worker_class="asgi", websocket_max_message_size=0)
    with Frames(server.address) as socket:
        socket.echoes("x" * (20 << 20))


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_websocket_client_library(pool: Pool, loop: str) -> None:
    server = pool.get(APP, worker_class="asgi", asgi_loop=loop)

    async def talk(number: int) -> None:
        uri = f"ws://127.0.0.1:{server.port}/echo"
        async with connect(uri, compression="deflate" if number % 2 else None, max_size=None) as client:
            for size in (0, 1, 125, 126, 70_000, 1 << 20):
                text = "ä" * size
                await client.send(text)
                assert await client.recv() == text
                await client.send(bytes(size))
                assert await client.recv() == bytes(size)
            await asyncio.wait_for(await client.ping(), 5)

    async def all_of_them() -> None:
        await asyncio.gather(*(talk(number) for number in range(20)))

    asyncio.run(asyncio.wait_for(all_of_them(), 60))


def test_a_client_of_others_is_told_why(pool: Pool) -> None:
    server = pool.get(APP, worker_class="asgi")

    async def talk() -> None:
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with connect(f"ws://127.0.0.1:{server.port}/reject"):
                pass
        assert refused.value.response.status_code == 403
        async with connect(f"ws://127.0.0.1:{server.port}/close?code=4000&reason=enough") as client:
            with pytest.raises(websockets.ConnectionClosedError) as closed:
                await client.recv()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4000, "enough")

    asyncio.run(asyncio.wait_for(talk(), 30))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 1001), (signal.SIGHUP, 1012)])
def test_websockets_when_the_worker_leaves(number: signal.Signals, code: int) -> None:
    """The client is told, and the application; messages that had come are answered as far as they were."""
    with Server(APP, worker_class="asgi", graceful_timeout=10, stream_drain=0.5) as server:
        with ExitStack() as stack:
            sockets = [stack.enter_context(Frames(server.address, f"/echo?name=left-{index}")) for index in range(5)]
            for socket in sockets:
                socket.echoes()
            server.signal(number)
            for socket in sockets:
                got = socket.frame()
                assert (got.first, got.code) == (CLOSE, code)
                socket.put(CLOSE, got.payload)
                socket.closed()
        for index in range(5):
            server.out.wait(rf'"disconnect", "code": {code}, .*"name": "left-{index}"')
        server.out.wait('"shutdown"')
        if number == signal.SIGTERM:
            assert server.wait_exit() == 0
        else:
            server.wait_ready()
            with Frames(server.address) as socket:
                socket.echoes()
                socket.goodbye()


def test_leaving_a_client_that_does_not_answer() -> None:
    with Server(APP, worker_class="asgi", graceful_timeout=20) as server, Frames(server.address) as socket:
        server.signal(signal.SIGTERM)
        assert socket.frame().code == 1001
        socket.sock.settimeout(15)
        socket.closed()
        assert server.wait_exit() == 0


def test_idle_ones_are_small(pool: Pool) -> None:
    server = pool.get(APP, worker_class="asgi", worker_connections=2000)
    with ExitStack() as stack:
        for first in range(2):
            before = proc.private_bytes(server.worker_pid())
            for _ in range(500):
                socket = stack.enter_context(Frames(server.address, "/echo", DEFLATE))
                socket.send(frame(TEXT, b"hello" * 100))
            until(lambda: server.get("/hello").status == 200, "the server has seen to them")
            grown = proc.private_bytes(server.worker_pid()) - before
            # The first ones pay for what all share.
            assert first == 0 or grown < 500 * BYTES_EACH, f"{grown / 500:.0f} bytes each"
