"""Events of sse-starlette, numbered from the last one that the client has seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route


async def events(request: Request) -> EventSourceResponse:
    async def generate() -> AsyncIterator[dict[str, str]]:
        number = int(request.headers.get("last-event-id", 0))
        while True:
            number += 1
            yield {"id": str(number), "data": f"event {number}"}
            await asyncio.sleep(0.02)

    return EventSourceResponse(generate())


app = Starlette(routes=[Route("/events", events)])
