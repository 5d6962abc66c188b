"""A small aiohttp application: JSON, an upload, events, a WebSocket, and a clock that runs beside them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from aiohttp import WSCloseCode, WSMsgType, web

routes = web.RouteTableDef()
CLOCK: web.AppKey[Clock] = web.AppKey("clock")
SOCKETS: web.AppKey[set[web.WebSocketResponse]] = web.AppKey("sockets")


class Clock:
    """Ticks beside the requests; a request that waits for a tick is told its number."""

    def __init__(self) -> None:
        self.ticks = 0
        self.ticked = asyncio.Condition()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            async with self.ticked:
                self.ticks += 1
                self.ticked.notify_all()

    async def next(self) -> int:
        async with self.ticked:
            await self.ticked.wait()
            return self.ticks


@routes.get("/")
async def hello(_: web.Request) -> web.Response:
    return web.Response(text="Hello from aiohttp on tricorn!\n")


@routes.get("/worker")
async def worker(request: web.Request) -> web.Response:
    return web.json_response({"pid": os.getpid(), "ticks": request.app[CLOCK].ticks})


@routes.put("/digest")
async def digest(request: web.Request) -> web.Response:
    """However long the upload is, no more than a piece of it is in memory."""
    found, size = hashlib.sha256(), 0
    async for piece in request.content.iter_chunked(64 * 1024):
        found.update(piece)
        size += len(piece)
    return web.json_response({"sha256": found.hexdigest(), "size": size})


@routes.get("/clock")
async def clock(request: web.Request) -> web.StreamResponse:
    """Server-sent events, until the client leaves."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    with suppress(ConnectionError):  # it has left
        while True:
            tick = await request.app[CLOCK].next()
            await response.write(f"id: {tick}\ndata: {time.strftime('%H:%M:%S')}\n\n".encode())
    return response


@routes.get("/source")
async def source(_: web.Request) -> web.FileResponse:
    return web.FileResponse(Path(__file__), headers={"Content-Disposition": 'attachment; filename="app.py"'})


@routes.get("/echo")
async def echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(heartbeat=30)
    await socket.prepare(request)
    request.app[SOCKETS].add(socket)
    try:
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await socket.send_str(message.data)
    finally:
        request.app[SOCKETS].discard(socket)
    return socket


async def run_clock(app: web.Application) -> AsyncIterator[None]:
    """What stands before `yield` is done before the first request, what stands behind it after the last one."""
    app[CLOCK] = Clock()
    task = asyncio.create_task(app[CLOCK].run())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def close_sockets(app: web.Application) -> None:
    for socket in list(app[SOCKETS]):
        await socket.close(code=WSCloseCode.GOING_AWAY, message=b"the server stops")


async def make_app() -> web.Application:
    app = web.Application(client_max_size=1 << 30)
    app[SOCKETS] = set()
    app.add_routes(routes)
    app.cleanup_ctx.append(run_clock)
    app.on_shutdown.append(close_sockets)
    return app
