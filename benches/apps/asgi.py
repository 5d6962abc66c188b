"""The application for ASGI; WebSockets echo."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

from benches.apps.wsgi import CHUNK, FILE_LENGTH, file_of_bench, work

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        await (lifespan if scope["type"] == "lifespan" else echo_messages)(receive, send)
        return
    match scope["path"]:
        case "/":
            await answer(send, b"Hello, World!")
        case "/echo":
            await answer(send, await body_of(receive))
        case "/count":
            await answer(send, b"%d" % await count(receive))
        case "/file":
            headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % FILE_LENGTH)]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.pathsend", "path": str(file_of_bench())})
        case "/stream":
            await stream(send)
        case "/compute":  # nothing is awaited while it works: what a coroutine that computes does to its loop
            await answer(send, work(scope["query_string"].decode("ascii")))
        case _:
            await asyncio.sleep(int(scope["query_string"].removeprefix(b"us=") or 0) / 1e6)
            await answer(send, b"%d" % os.getpid())


async def body_of(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    return body


async def count(receive: Receive) -> int:
    total, more = 0, True
    while more:
        event = await receive()
        total += len(event.get("body", b""))
        more = event.get("more_body", False)
    return total


async def answer(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def stream(send: Send) -> None:
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for _ in range(100):
        await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def echo_messages(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (event := await receive())["type"] == "websocket.receive":
        if (text := event.get("text")) is not None:
            await send({"type": "websocket.send", "text": text})
        else:
            await send({"type": "websocket.send", "bytes": event["bytes"]})


async def lifespan(receive: Receive, send: Send) -> None:
    while True:
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return
