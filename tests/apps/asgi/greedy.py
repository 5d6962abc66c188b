"""Reads a body more slowly than it comes: how many pieces it got, and how many without a turn for another task."""

from __future__ import annotations

import asyncio
import time
from typing import Any


class Neighbour:
    """Another task of the loop, which runs whenever the loop gives it a turn."""

    def __init__(self) -> None:
        self.turns = 0
        self.task = asyncio.ensure_future(self.run())

    async def run(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


def work() -> None:
    """Takes longer than a piece takes to come."""
    time.sleep(0.002)


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        raise RuntimeError("no lifespan here")
    neighbour = Neighbour()
    pieces = longest = run = 0
    turns, more = neighbour.turns, True
    while more:
        more = (await receive()).get("more_body", False)
        work()
        pieces += 1
        run = run + 1 if neighbour.turns == turns else 0
        turns, longest = neighbour.turns, max(longest, run)
    neighbour.task.cancel()
    body = f"{pieces} {longest}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
