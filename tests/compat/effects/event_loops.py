"""The event-loop classes: an effect for each setting, `sees_<name>`."""

from __future__ import annotations

import struct
import time
from typing import Any

from tests.compat.effects.common import refuses
from tests.compat.effects.shared import shared
from tests.harness import REFERENCE, Site, until
from tests.harness.frames import BINARY, COMPRESSED, DEFLATE, PING, PONG, Frames
from tests.harness.needs import needs
from tests.harness.wire import request

APPLICATION = """
import asyncio, json

started = False

async def application(scope, receive, send):
    global started
    if scope["type"] == "lifespan":
        await receive()
        started = True
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
    elif scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] != "websocket.disconnect":
            await send({"type": "websocket.send", "bytes": message["bytes"]})
        print("ended with", message["code"], flush=True)
    else:
        if scope["path"] == "/wait":
            try:
                while (await receive())["type"] != "http.disconnect": pass
                print("the client has left", flush=True)
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                print("cancelled", flush=True)
                raise
        facts = {"loop": type(asyncio.get_running_loop()).__module__, "started": started}
        facts["extensions"] = sorted(scope["extensions"])
        body = json.dumps({**facts, "root_path": scope["root_path"], "path": scope["path"]}).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})
"""


def asgi(config: str) -> Site:
    return Site(f"worker_class = 'asgi'\n{config}\n", app="mine:application", files={"mine.py": APPLICATION})


@shared
def asgi_as_it_is() -> Site:
    return asgi("")


@shared
def asgi_without() -> Site:
    return asgi(
        "asgi_loop = 'asyncio'\n"
        "asgi_lifespan = 'off'\n"
        "asgi_pathsend = True\n"
        "asgi_disconnect_grace_period = 1\n"
        "websocket_compression = False\n"
        "websocket_max_message_size = 1000"
    )


@shared
def asgi_pinging() -> Site:
    return asgi("websocket_ping_interval = 0.2\nasgi_lifespan = 'auto'\nroot_path = '/below'")


def facts(server: Site, target: str = "/x") -> Any:
    return server.get(target).json()


def sees_asgi_loop(asgi_without: Site, asgi_as_it_is: Site) -> None:
    assert facts(asgi_without)["loop"].startswith("asyncio")
    refuses("asgi_loop", "'asyncio'", "'no_such_loop'")
    needs("uvloop")
    with asgi("asgi_loop = 'uvloop'") as server:
        assert facts(server)["loop"] == "uvloop"
    assert facts(asgi_as_it_is)["loop"] == "uvloop"


def sees_asgi_lifespan(asgi_without: Site, asgi_pinging: Site) -> None:
    assert facts(asgi_without)["started"] is False
    assert facts(asgi_pinging)["started"] is True
    refuses("asgi_lifespan", "'off'", "'perhaps'")


def sees_asgi_disconnect_grace_period(asgi_without: Site) -> None:
    with asgi_without.connect() as wire:
        wire.send(request("GET", "/wait"))
        until(lambda: asgi_without.get("/x").status == 200, "it serves")
        wire.close()
        asgi_without.out.wait("the client has left")
        begun = time.monotonic()
        asgi_without.out.wait("cancelled")
        assert time.monotonic() - begun > 0.7


def sees_asgi_pathsend(asgi_without: Site, asgi_as_it_is: Site) -> None:
    assert "http.response.pathsend" in facts(asgi_without)["extensions"]
    assert "http.response.pathsend" not in facts(asgi_as_it_is)["extensions"]


def sees_root_path(asgi_pinging: Site) -> None:
    told = facts(asgi_pinging, "/below/x" if REFERENCE else "/x")
    assert (told["root_path"], told["path"]) == ("/below", "/below/x")


def sees_websocket_max_message_size(asgi_without: Site) -> None:
    with Frames(asgi_without.address, "/") as websocket:
        websocket.echoes(bytes(1000))
        websocket.put(BINARY, bytes(1001)).failed(1009)


def sees_websocket_ping_interval(asgi_pinging: Site) -> None:
    with Frames(asgi_pinging.address, "/") as websocket:
        for _ in range(2):
            ping = websocket.frame()
            assert ping.first == PING
            websocket.put(PONG, ping.payload)
        websocket.echoes(b"still there")


def sees_websocket_ping_timeout() -> None:
    config = "websocket_ping_interval = 0.2\nwebsocket_ping_timeout = 0.3"
    with asgi(config) as server, Frames(server.address, "/") as websocket:
        assert websocket.frame().first == PING
        server.out.wait("ended with 1006")


def sees_websocket_compression(asgi_without: Site, asgi_as_it_is: Site) -> None:
    for server, compressed in ((asgi_without, 0), (asgi_as_it_is, COMPRESSED)):
        with Frames(server.address, "/", DEFLATE) as websocket:
            assert bool(websocket.response.get("Sec-WebSocket-Extensions")) is bool(compressed)
            websocket.put(BINARY, bytes(1000))
            frame = websocket.frame()
            assert frame.first == BINARY | compressed
            websocket.put(0x88, struct.pack("!H", 1000))


OWN = ("websocket_ping_interval", "websocket_ping_timeout", "websocket_compression")
