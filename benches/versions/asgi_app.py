"""The cases as an ASGI application, by path; WebSockets echo."""

from __future__ import annotations

from benches.end_to_end.apps import CHUNK
from benches.loops import apps


async def app(scope: apps.Scope, receive: apps.Receive, send: apps.Send) -> None:
    if scope["type"] != "http" or scope["path"] == "/echo":
        await apps.echo(scope, receive, send)
    elif scope["path"] == "/":
        await apps.hello(scope, receive, send)
    else:
        await stream(send)


async def stream(send: apps.Send) -> None:
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for _ in range(100):
        await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
