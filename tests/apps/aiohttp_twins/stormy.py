"""What storms ask of an application (tests/apps/stormy.py), for aiohttp."""

from __future__ import annotations

import counted
import stormy
from aiohttp import web


async def board(_: web.Request) -> web.StreamResponse:
    return web.json_response(counted.board())


async def fork(request: web.Request) -> web.StreamResponse:
    return web.json_response({"child": stormy.fork(request.query["how"])})


async def eat(request: web.Request) -> web.StreamResponse:
    return web.json_response(await stormy.hunger(dict(request.query)))


async def stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(stormy.pieces(dict(request.query))):
        await response.write(stormy.PIECE)
    await response.write_eof()
    return response


async def upload(request: web.Request) -> web.StreamResponse:
    counted.note(request.query.get("id", "-"))
    return web.json_response(stormy.received(dict(request.query), await request.read()))


async def count(request: web.Request) -> web.StreamResponse:
    counted.note(request.query.get("id", "-"))
    body = await request.read()
    await stormy.wait(dict(request.query))
    return web.json_response(stormy.received(dict(request.query), body))


application = web.Application(client_max_size=1 << 26)
application.add_routes(
    [
        web.get("/board", board),
        web.get("/fork", fork),
        web.get("/eat", eat),
        web.get("/stream", stream),
        web.post("/upload", upload),
        web.route("*", "/", count),
    ]
)
