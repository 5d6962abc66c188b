"""Clients that always have more, and responses that never have to wait: other clients have their turn in between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from tests.conftest import Pool
from tests.harness import Server, each
from tests.harness.certificates import Authority
from tests.harness.classes import EVENT_LOOPS, GREEN, SERVERS_OF_CLASSES, THREADED
from tests.harness.frames import BINARY, CLOSE, PING, Frames, frame
from tests.harness.needs import needs
from tests.harness.tls import SecureFrames, SecureWire, client
from tests.harness.wire import Wire, request

pytestmark = pytest.mark.beyond_reference("its workers are held by one client")

MANY = 3000
"""Things that are done in a flood (`PIECES` of the application)."""
TURNS = 10
"""Of another client in the midst of it, at least: it has hundreds, or two where a flood is served to its end."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@contextmanager
def beside(flood: Callable[[], object]) -> Iterator[None]:
    thread = threading.Thread(target=flood, daemon=True)
    thread.start()
    yield
    thread.join(60)
    assert not thread.is_alive()


def has_turns(server: Server, flood: Callable[[], object], context: Any = None) -> None:
    """Asks again and again how far the flood is."""

    def count() -> int:
        if context is None:
            return int(server.get("/count").body)
        with SecureWire(server.address, context) as wire:
            return int(wire.get("/count").body)

    before, seen = count(), set()
    with beside(flood):
        while (so_far := count() - before) < MANY:
            seen.add(so_far)
    assert len(seen - {0}) > TURNS, sorted(seen)


def drained(connect: Callable[[], Wire], target: str) -> Callable[[], None]:
    """Reads a response to its end as fast as it comes."""

    def read() -> None:
        with connect() as wire:
            wire.send(request("GET", target, [("Connection", "close")]))
            while wire.sock.recv(1 << 20):
                pass

    return read


def pushed(connect: Callable[[], Frames], *frames: bytes) -> Callable[[], None]:
    """Sends messages, each with other frames behind it, without a pause."""

    def push() -> None:
        with connect() as wire:
            wire.send((frame(BINARY, b"12345678") + b"".join(frames)) * MANY + frame(CLOSE))
            while wire.sock.recv(1 << 20):
                pass

    return push


LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


def asgi(pool: Pool, loop: str, **options: Any) -> Server:
    if loop == "uvloop":
        needs("uvloop")
    return pool.get("floods:application", worker_class="asgi", asgi_loop=loop, **options)


@LOOPS
@pytest.mark.parametrize("frames", [[], [frame(PING)] * 3], ids=["messages", "pings"])
def test_a_websocket_that_sends_without_pause(pool: Pool, loop: str, frames: list[bytes]) -> None:
    server = asgi(pool, loop)
    has_turns(server, pushed(partial(Frames, server.address, "/pull"), *frames))


@LOOPS
def test_a_websocket_that_is_sent_to_without_pause(pool: Pool, loop: str) -> None:
    server = asgi(pool, loop)

    def read() -> None:
        with Frames(server.address, "/push") as socket:
            while socket.sock.recv(1 << 20):
                pass

    has_turns(server, read)


@LOOPS
def test_a_response_that_is_read_as_fast_as_it_is_written(pool: Pool, loop: str) -> None:
    server = asgi(pool, loop)
    has_turns(server, drained(server.connect, "/stream"))


@pytest.mark.parametrize("what", ["messages", "stream"])
def test_a_flood_over_tls(pool: Pool, authority: Authority, what: str) -> None:
    server = pool.get("floods:application", worker_class="asgi", certificate=authority.issue("server").pair)
    context = client(authority)
    if what == "messages":
        flood = pushed(partial(SecureFrames, server.address, "/pull", context=context))
    else:
        flood = drained(partial(SecureWire, server.address, context), "/stream")
    has_turns(server, flood, context)


# aiohttp looks whether its client is behind after each 64 KiB.
TARGETS = {"tornado": "/stream", "aiohttp": "/stream?large", "gevent": "/stream", "eventlet": "/stream"}


@pytest.mark.parametrize(("worker_class", "target"), each(*TARGETS, values=[*TARGETS.values()]))
def test_a_response_of_another_class_that_never_waits(pool: Pool, worker_class: str, target: str) -> None:
    server = pool.get("floods:application", worker_class=worker_class)
    has_turns(server, drained(server.connect, target))


@pytest.mark.parametrize("worker_class", each(*THREADED, *GREEN, *EVENT_LOOPS, *SERVERS_OF_CLASSES))
def test_pipelined_requests(pool: Pool, worker_class: str) -> None:
    server = pool.get("floods:application", worker_class=worker_class)

    def pipeline() -> None:
        with server.connect() as wire:
            last = request("GET", "/work", [("Connection", "close")])
            feeder = threading.Thread(
                target=wire.send, args=(request("GET", "/work") * (MANY - 1) + last,), daemon=True
            )
            feeder.start()
            while wire.sock.recv(1 << 20):
                pass

    has_turns(server, pipeline)
