"""What never has to wait (tests/apps/floods.py), for ASGI."""

from __future__ import annotations

from typing import Any

import floods  # the other one: this is asgi.floods


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        return
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await (push if scope["path"] == "/push" else pull)(receive, send)
        return
    if scope["path"] == "/stream":
        await send({"type": "http.response.start", "status": 200})
        for piece in floods.pieces():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})
        return
    if scope["path"] == "/work":
        floods.work()
    body = floods.count()
    fields = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})


async def pull(receive: Any, _: Any) -> None:
    while (await receive())["type"] == "websocket.receive":
        floods.work()


async def push(_: Any, send: Any) -> None:
    for piece in floods.pieces():
        await send({"type": "websocket.send", "bytes": piece})
    await send({"type": "websocket.close"})
