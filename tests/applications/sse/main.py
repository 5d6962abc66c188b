"""Events of sse-starlette, numbered from the last one that the client has seen; streams with a background task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route


async def events(request: Request) -> EventSourceResponse:
    async def generate() -> AsyncIterator[dict[str, str]]:
        number = int(request.headers.get("last-event-id", 0))
        while True:
            number += 1
            yield {"id": str(number), "data": f"event {number}"}
            await asyncio.sleep(0.02)

    return EventSourceResponse(generate())


NOTES: list[str] = []
"""What became of the stream that was left last, in order."""


async def stream(request: Request) -> StreamingResponse:
    NOTES.clear()

    async def generate() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"data: again\n\n"
                await asyncio.sleep(float(request.path_params["pause"]))
        finally:
            NOTES.append("closed")

    after = BackgroundTask(lambda: NOTES.append("background"))
    return StreamingResponse(generate(), media_type="text/event-stream", background=after)


async def notes(_: Request) -> JSONResponse:
    return JSONResponse(NOTES)


app = Starlette(routes=[Route("/events", events), Route("/stream/{pause}", stream), Route("/notes", notes)])
