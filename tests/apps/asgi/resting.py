"""The gallery, and WebSockets: each says one word and listens."""

from __future__ import annotations

from typing import Any

from asgi.gallery import Receive, Send
from asgi.gallery import application as gallery


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] != "websocket":
        await gallery(scope, receive, send)
        return
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": "hello"})
    while (await receive())["type"] != "websocket.disconnect":
        pass
