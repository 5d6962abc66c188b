"""ASGI applications of which nothing matters but the body of their answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Callable[[], Awaitable[Message]], Send], Awaitable[None]]


def answering(body_of: Callable[[Message], bytes], *fields: tuple[bytes, bytes]) -> Application:
    """Answers each request with the body for its scope, and with `fields`. Knows neither lifespan nor WebSockets."""

    async def application(scope: Message, receive: Callable[[], Awaitable[Message]], send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']} is nothing for this application")
        body = body_of(scope)
        headers = [(b"content-length", b"%d" % len(body)), *fields]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return application
