"""The cases in aiohttp, by path."""

# Installed where the servers are measured, not where they are type-checked.
# mypy: disable-error-code="import-not-found,import-untyped,misc"

from __future__ import annotations

from aiohttp import web

from benches.end_to_end.apps import CHUNK
from benches.loops.aiohttp_app import hello


async def echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read())


async def stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(100):
        await response.write(CHUNK)
    await response.write_eof()
    return response


app = web.Application()
app.router.add_get("/", hello)
app.router.add_post("/echo", echo)
app.router.add_get("/stream", stream)
