"""Responses as a test describes them (tests/apps/compressed.py), in aiohttp's words."""

from __future__ import annotations

import asyncio

from aiohttp import web
from compressed import PAUSE, Failed, Play  # the other one: this is aiohttp_twins.compressed


async def answer(request: web.Request) -> web.StreamResponse:
    play = Play(request.query_string)
    if play.is_whole:
        return web.Response(status=play.status, headers=play.fields, body=play.body)
    response = web.StreamResponse(status=play.status, headers=play.fields)
    await response.prepare(request)
    for number, piece in enumerate(play.pieces):
        await response.write(piece)
        while not play.is_open(number):  # noqa: ASYNC110 (a look at a file of the test's)
            await asyncio.sleep(PAUSE)
    if play.fails:
        raise Failed
    return response


application = web.Application()
application.router.add_route("*", "/{path:.*}", answer)
