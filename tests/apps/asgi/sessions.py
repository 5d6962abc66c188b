"""The application with sessions (tests/apps/sessions.py), for event loops."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import sessions  # the other one: this is asgi.sessions

Message = dict[str, Any]


async def application(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    if scope["type"] != "http":
        raise ValueError(f"{scope['type']} is nothing for this application")
    given = dict(parse_qsl(scope["query_string"].decode()))
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(float(given.get("s", 0)))
    for _ in range(6000):
        if "gate" not in given or is_open(given["gate"]):
            break
        await asyncio.sleep(0.005)
    name = dict(scope["headers"]).get(b"x-session", b"").decode()
    status, fields, body = sessions.answer(scope["path"], name)
    headers = [(field.lower().encode(), value.encode()) for field, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def is_open(gate: str) -> bool:
    return os.path.exists(gate)
