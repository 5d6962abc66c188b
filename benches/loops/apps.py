"""The ASGI applications that are measured. Each is the plainest way to write it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

running = 0


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"13")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"Hello, World!"})


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends back what it receives: bodies, and messages of WebSockets."""
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    if scope["type"] == "websocket":
        await echo_messages(receive, send)
        return
    body = b""
    more = True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    await answer(send, body)


async def echo_messages(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (event := await receive())["type"] == "websocket.receive":
        if (text := event.get("text")) is not None:
            await send({"type": "websocket.send", "text": text})
        else:
            await send({"type": "websocket.send", "bytes": event["bytes"]})


async def sleep(scope: Scope, receive: Receive, send: Send) -> None:
    """`/?SECONDS` sleeps; says how many slept at once when it began."""
    global running
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    running += 1
    try:
        begun = running
        if scope["query_string"]:
            await asyncio.sleep(float(scope["query_string"]))
    finally:
        running -= 1
    await answer(send, b"%d" % begun)


async def answer(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def lifespan(receive: Receive, send: Send) -> None:
    while True:
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return
