"""Application that shows a traceback, served with `reload` while the real one cannot be loaded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

CONTENT_TYPE = "text/plain; charset=utf-8"


def make_stand_in(traceback: str) -> Callable[..., Iterable[bytes]]:
    """A WSGI application that answers every request with 500 and the text, as gunicorn does."""
    body = traceback.encode("utf-8", "replace")

    def stand_in(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        headers = [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(body)))]
        start_response("500 Internal Server Error", headers)
        return [body]

    return stand_in


def make_asgi_stand_in(traceback: str) -> Callable[..., Awaitable[None]]:
    """The same for ASGI. A WebSocket is closed before it is accepted, which is 403; nothing is to be started."""
    body = traceback.encode("utf-8", "replace")
    headers = [(b"content-type", CONTENT_TYPE.encode()), (b"content-length", b"%d" % len(body))]

    async def stand_in(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 500, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        else:
            for _ in range(2):
                await send({"type": f"{(await receive())['type']}.complete"})

    return stand_in
