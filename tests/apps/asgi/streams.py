"""Responses that last, over ASGI.

`/listens` ends by the disconnect, `/knows` by the notice, `/deaf` not even by being cancelled. `/mute` and `/packed`
are as `/silent`: no event stream, and one that is compressed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TICK = 0.05
PIECES = {"/ticks": b"data: tick\n\n", "/half": b"data: half\n", "/text": b"text\n", "/deaf": b"data: deaf\n\n"}


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


async def lifespan(receive: Receive, send: Send) -> None:
    while True:
        phase = (await receive())["type"]
        await send({"type": f"{phase}.complete"})
        if phase == "lifespan.shutdown":
            say("lifespan shutdown")
            return


async def listen(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def application(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        return await lifespan(receive, send)
    path, method = scope["path"], scope["method"]

    async def piece(body: bytes, more: bool = True) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": more})

    kind = b"text/plain" if path in ("/text", "/mute") else b"text/event-stream"
    fields = [(b"content-type", kind), *([(b"content-encoding", b"br")] if path == "/packed" else [])]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    try:
        if path in PIECES:
            while True:
                await piece(PIECES[path])
                try:
                    await asyncio.sleep(TICK)
                except asyncio.CancelledError:
                    if path != "/deaf":
                        raise
        await piece(b"data: begun\n\n")
        if path == "/listens":
            await listen(receive)
            await piece(b"data: last\n\n")
        elif path == "/knows":
            await scope["extensions"]["tricorn"]["leaving"]
            await piece(b"data: bye\n\n", False)
        else:  # /silent, /mute, /packed
            await asyncio.Event().wait()
    finally:
        say(f"ended {method} {path}")
