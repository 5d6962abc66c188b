"""The gallery, and a WebSocket at `/socket`: it says one word and listens."""

from __future__ import annotations

from aiohttp import web
from aiohttp_twins.gallery import serve


@web.middleware
async def with_sockets(request: web.Request, handler: object) -> web.StreamResponse:
    if request.path != "/socket":
        return await serve(request, handler)
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    await socket.send_str("hello")
    async for _ in socket:
        pass
    return socket


application = web.Application(middlewares=[with_sockets])
