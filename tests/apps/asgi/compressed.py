"""Responses as a test describes them (tests/apps/compressed.py), over ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from compressed import PAUSE, Failed, Play  # the other one: this is asgi.compressed

Message = dict[str, Any]


async def application(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    if scope["type"] != "http":
        raise ValueError(f"{scope['type']} is nothing for this application")
    play = Play(scope["query_string"].decode())
    fields = [(name.lower().encode(), value.encode()) for name, value in play.fields]
    await send({"type": "http.response.start", "status": play.status, "headers": fields})
    if play.is_whole:
        await send({"type": "http.response.body", "body": play.body})
        return
    for number, piece in enumerate(play.pieces):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        while not play.is_open(number):  # noqa: ASYNC110 (a look at a file of the test's)
            await asyncio.sleep(PAUSE)
    if play.fails:
        raise Failed
    await send({"type": "http.response.body", "body": b""})
