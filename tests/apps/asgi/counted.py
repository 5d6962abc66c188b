"""The application that keeps a ledger (tests/apps/counted.py), for event loops."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import counted  # the other one: this is asgi.counted

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def application(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        raise ValueError(f"{scope['type']} is nothing for this application")
    path, given = scope["path"], dict(parse_qsl(scope["query_string"].decode()))
    if path == "/board":
        await answer(send, counted.board())
        return
    counted.note(given.get("id", "-"))
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    if path == "/c":
        counted.hold_the_gil(given["fifo"])
    elif path == "/locked":
        import stuck

        stuck.holds_the_lock_in_c()
    elif "gate" in given:
        for _ in range(6000):
            if is_open(given["gate"]):
                break
            await asyncio.sleep(0.005)
    elif "s" in given:
        await asyncio.sleep(float(given["s"]))
    told = {
        "pid": os.getpid(),
        "thread": threading.get_ident(),
        "id": given.get("id"),
        "length": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "remote_port": str(scope["client"][1]) if scope["client"] else None,
    }
    await answer(send, told)


def is_open(gate: str) -> bool:
    return os.path.exists(gate)


async def answer(send: Send, what: object) -> None:
    text = json.dumps(what).encode()
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": text})
