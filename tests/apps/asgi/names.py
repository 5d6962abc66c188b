"""The same for event loops."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from names import answer  # the other one: this is asgi.names

Message = dict[str, Any]


async def application(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    if scope["type"] != "http":
        raise ValueError(f"{scope['type']} is nothing for this application")
    body = answer(next((name for name, _ in scope["headers"] if name == b"x-same"), None))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
