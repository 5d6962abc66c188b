"""Reads a body to its end, piece by piece, and answers."""

from __future__ import annotations

from aiohttp import web


async def upload(request: web.Request) -> web.Response:
    async for _ in request.content.iter_any():
        pass
    return web.Response(text="ok")


application = web.Application()
application.router.add_route("*", "/", upload)
