"""Requests that do not come back, for event loops: `/naps` waits in the loop, the others hold the loop up."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import stuck  # the other one, whose functions a stack in the log shows: this is asgi.stuck

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HOARD: list[bytes] = []


async def naps_in_python() -> None:
    await asyncio.sleep(60)


async def application(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        raise ValueError(f"{scope['type']} is nothing for this application")
    path, given = scope["path"], dict(parse_qsl(scope["query_string"].decode()))
    match path:
        case "/naps":
            await naps_in_python()
        case "/catches":
            try:
                await naps_in_python()
            except Exception:  # what a framework does
                pass
        case "/short":
            await asyncio.sleep(float(given["s"]))
        case "/grow":
            HOARD.append(b"x" * int(given["bytes"]))
        case _ if path in stuck.STUCK:
            stuck.STUCK[path]()
    body = str(os.getpid()).encode()
    fields = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})
