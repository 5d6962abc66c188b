"""WebSockets over TLS, under the classes whose core or framework speaks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.tls.world import World, serve
from tests.conftest import Pool
from tests.harness import Server, with_each
from tests.harness.classes import each
from tests.harness.frames import BINARY, CLOSE, PING, PONG
from tests.harness.tls import SecureFrames, client

pytestmark = pytest.mark.beyond_reference("of its classes only that of gevent speaks WebSockets over TLS")

FRAMEWORKS = Path(__file__).parents[2] / "frameworks/apps"
ONE_MIB = bytes(range(256)) * 4096
PATHS = {"asgi": "/echo", "tornado": "/echo", "aiohttp": "/ws"}
CLASSES = pytest.mark.parametrize("alias", each(*PATHS))


def started(alias: str, pool: Pool, world: World) -> Server:
    if alias == "asgi":
        return serve(pool, alias, "sockets:application", **world.settings(websocket_max_message_size=2 << 20))
    if alias == "tornado":
        return pool.get("tornado_app:application", chdir=FRAMEWORKS, worker_class=alias, **world.settings())
    env = {"EVENTS": str(world.crl.with_name("events")), "FILE": str(FRAMEWORKS / "file.bin")}
    return pool.get("aiohttp_app:app", chdir=FRAMEWORKS, worker_class=alias, env=env, **world.settings())


def opened(alias: str, server: Server, world: World, version: str = "1.3") -> SecureFrames:
    return SecureFrames(server.address, PATHS[alias], context=client(world.authority, version))


@CLASSES
@with_each("version", ("1.2", "1.3"))
def test_messages_come_back_and_the_end_is_answered(alias: str, version: str, pool: Pool, world: World) -> None:
    with opened(alias, started(alias, pool, world), world, version) as sock:
        sock.echoes("grüß")
        sock.echoes(b"\0\xff")
        sock.put(PING, b"there?")
        got = sock.frame()
        assert (got.first, got.payload) == (PONG, b"there?")
        sock.goodbye()


@CLASSES
def test_a_message_of_a_mebibyte(alias: str, pool: Pool, world: World) -> None:
    """aiohttp's example takes as much, and not a byte more."""
    with opened(alias, started(alias, pool, world), world) as sock:
        sock.put(BINARY, ONE_MIB[:-1])
        assert sock.message() == ONE_MIB[:-1]
        sock.echoes()
        sock.goodbye()


@CLASSES
def test_thousands_of_small_messages(alias: str, pool: Pool, world: World) -> None:
    with opened(alias, started(alias, pool, world), world) as sock:
        for _ in range(10):
            for number in range(200):
                sock.put(BINARY, b"%d" % number)
            assert [sock.message() for _ in range(200)] == [b"%d" % number for number in range(200)]
        sock.goodbye()


@pytest.mark.parametrize("alias", each("asgi", "aiohttp"))
def test_a_frame_that_is_wrong_is_told_so_before_the_end(alias: str, pool: Pool, world: World) -> None:
    """tornado ends without a word."""
    with opened(alias, started(alias, pool, world), world) as sock:
        sock.put(0x83, b"no such opcode")
        while (got := sock.frame()).first != CLOSE:
            pass
        assert got.code == 1002
