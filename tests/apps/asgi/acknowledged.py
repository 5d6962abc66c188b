"""Events of which each is sent when the browser has acknowledged the one before: one that is held back holds up all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

PAGE = b"""<!doctype html><title>events</title><script>
window.ids = [];
const source = new EventSource("/events?page");
source.onmessage = event => {
    window.ids.push(Number(event.lastEventId));
    fetch("/seen?" + event.lastEventId);
};
async function coding() {
    const abort = new AbortController();
    const response = await fetch("/events?peek", {signal: abort.signal});
    abort.abort();
    return response.headers.get("content-encoding");
}
</script>"""
_seen: dict[int, asyncio.Event] = {}


def seen(number: int) -> asyncio.Event:
    return _seen.setdefault(number, asyncio.Event())


async def application(scope: Message, receive: Receive, send: Send) -> None:
    assert scope["type"] == "http"
    path, query = scope["path"], scope["query_string"].decode()
    if path == "/seen":
        seen(int(query)).set()
    if path != "/events":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": PAGE})
        return
    fields = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    number = 0
    while True:
        number += 1
        event = b"id: %d\ndata: an event\n\n" % number
        await send({"type": "http.response.body", "body": event, "more_body": True})
        if query == "peek":
            await receive()  # the request
            await receive()  # its end
            return
        await seen(number).wait()
