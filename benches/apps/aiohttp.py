"""The application for aiohttp."""

# Installed where the servers are measured, not where they are type-checked.
# mypy: disable-error-code="import-not-found,import-untyped"

from __future__ import annotations

import asyncio

from aiohttp import web

from benches.apps.wsgi import CHUNK


async def hello(request: web.Request) -> web.Response:
    return web.Response(body=b"Hello, World!", content_type="text/plain")


async def sleep(request: web.Request) -> web.Response:
    await asyncio.sleep(1)
    return web.Response(text="slept for a second\n")


async def echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read())


async def count(request: web.Request) -> web.Response:
    async for _ in request.content.iter_any():
        pass
    return web.Response(text="ok")


async def stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(100):
        await response.write(CHUNK)
    await response.write_eof()
    return response


app = web.Application()
app.add_routes([web.get("/", hello), web.get("/io", sleep), web.get("/stream", stream)])
app.add_routes([web.post("/echo", echo), web.post("/count", count)])
