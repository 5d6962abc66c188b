"""What a worker may be asked to do in place of another (tests/apps/lent.py), for event loops; and trailers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import lent  # the other one: this is asgi.lent
from counted import note

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Reply:
    def __init__(self, send: Send) -> None:
        self._send = send

    async def start(self, *fields: tuple[bytes, bytes], kind: bytes = b"octet-stream", trailers: bool = False) -> None:
        own = [(b"x-pid", str(os.getpid()).encode()), (b"content-type", b"application/" + kind)]
        message = {"type": "http.response.start", "status": 200, "headers": [*own, *fields]}
        await self._send(message | ({"trailers": True} if trailers else {}))

    async def piece(self, data: bytes, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


async def application(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        raise ValueError(f"{scope['type']} is nothing for this application")
    path, given = scope["path"], dict(parse_qsl(scope["query_string"].decode()))
    note(given.get("id", "-"))
    reply = Reply(send)
    if path == "/file":
        await reply.start((b"content-length", str(os.path.getsize(given["path"])).encode()))  # noqa: ASYNC240
        await send({"type": "http.response.pathsend", "path": given["path"]})
        return
    if path == "/stream":
        await reply.start()
        for piece in lent.pieces(given):
            lent.progress(given)
            await reply.piece(piece)
        await reply.piece(b"", False)
        return
    if path == "/lasts":
        await lasts(reply, receive, given)
        return
    if path == "/trailers":
        await reply.start((b"trailer", b"x-sum"), trailers=True)
        await reply.piece(b"done", False)
        await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"9")]})
        return
    if path == "/hints":
        await send({"type": "http.response.early_hint", "links": [lent.LINK.encode()]})
    body = await read(receive)
    while "gate" in given and not os.path.exists(given["gate"]):  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.005)
    told = {key: scope.get(key) for key in ("method", "path", "http_version", "scheme", "client", "server")}
    told |= {"query": scope["query_string"].decode(), "tls": repr(scope["extensions"].get("tls"))}
    told["headers"] = [(name.decode(), value.decode()) for name, value in scope["headers"]]
    text = json.dumps({"told": told, "length": len(body), "sha256": hashlib.sha256(body).hexdigest()}).encode()
    await reply.start((b"content-length", str(len(text)).encode()), kind=b"json")
    await reply.piece(text, False)


async def read(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def lasts(reply: Reply, receive: Receive, given: dict[str, str]) -> None:
    """Until the client leaves, or a file says that it is enough."""
    await read(receive)
    left = asyncio.ensure_future(receive())
    await reply.start()
    try:
        while not (os.path.exists(given["end"]) or left.done()):  # noqa: ASYNC240
            await reply.piece(b"tick")
            await asyncio.wait([left], timeout=0.01)
        await reply.piece(b"done", False)
    finally:
        left.cancel()
        note(f"{given['id']}.over")
