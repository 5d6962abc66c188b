"""What storms ask of an application (tests/apps/stormy.py), for ASGI; WebSockets echo."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import counted  # the other one: this is asgi.stormy
import stormy
from asgi.counted import Message, Receive, Send, answer
from asgi.counted import application as ledger


async def application(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await echo(receive, send)
        return
    given = dict(parse_qsl(scope["query_string"].decode())) if scope["type"] == "http" else {}
    match scope.get("path"):
        case "/fork":
            await answer(send, {"child": stormy.fork(given["how"])})
        case "/eat":
            await answer(send, await stormy.hunger(given))
        case "/stream":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(stormy.pieces(given)):
                await send({"type": "http.response.body", "body": stormy.PIECE, "more_body": True})
            await send({"type": "http.response.body"})
        case "/upload":
            counted.note(given.get("id", "-"))
            await answer(send, stormy.received(given, await whole(receive)))
        case _:
            await ledger(scope, receive, send)


async def whole(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError("the client left in the middle of its body")
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def echo(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    event: dict[str, Any] = await receive()
    while event["type"] == "websocket.receive":
        await send({"type": "websocket.send", **{kind: event[kind] for kind in ("text", "bytes") if event.get(kind)}})
        event = await receive()
