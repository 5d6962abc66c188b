"""Responses that last, in aiohttp's words."""

from __future__ import annotations

import asyncio
import sys

from aiohttp import web

TICK = 0.05
PIECES = {"/ticks": b"data: tick\n\n", "/half": b"data: half\n", "/text": b"text\n"}


async def stream(request: web.Request) -> web.StreamResponse:
    kind = "text/plain" if request.path == "/text" else "text/event-stream"
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    try:
        if request.path == "/silent":
            await response.write(b"data: begun\n\n")
            while request.transport is not None:  # noqa: ASYNC110 (aiohttp tells by nothing else)
                await asyncio.sleep(TICK)
        else:
            while True:
                await response.write(PIECES[request.path])
                await asyncio.sleep(TICK)
    finally:
        print(f"ended {request.method} {request.path}", file=sys.stderr, flush=True)
    return response


async def cleaned_up(_: web.Application) -> None:
    print("lifespan shutdown", file=sys.stderr, flush=True)


application = web.Application()
application.router.add_route("*", "/{path}", stream)
application.on_cleanup.append(cleaned_up)
