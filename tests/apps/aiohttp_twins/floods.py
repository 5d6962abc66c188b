"""What never has to wait (tests/apps/floods.py), for aiohttp."""

from __future__ import annotations

import floods
from aiohttp import web


async def count(request: web.Request) -> web.StreamResponse:
    if request.path == "/work":
        floods.work()
    return web.Response(body=floods.count())


async def stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for piece in floods.pieces():
        await response.write(piece * (1000 if "large" in request.query else 1))
    return response


application = web.Application()
application.add_routes([web.get("/count", count), web.get("/work", count), web.get("/stream", stream)])
