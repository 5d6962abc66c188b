"""A page with an EventSource, and events that are numbered from the last one that the browser has seen."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

PAGE = b"""<!doctype html><title>events</title><script>
window.ids = []; window.pids = []; window.opened = 0;
const source = new EventSource("/events");
source.onopen = () => { window.opened += 1; };
source.onmessage = event => {
    window.ids.push(Number(event.lastEventId));
    if (!window.pids.includes(event.data)) window.pids.push(event.data);
};
</script>"""
TICK = 0.02


async def application(scope: Message, receive: Receive, send: Send) -> None:
    assert scope["type"] == "http"
    if scope["path"] != "/events":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": PAGE})
        return
    number = int(dict(scope["headers"]).get(b"last-event-id", b"0"))
    fields = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    while True:
        number += 1
        event = b"id: %d\ndata: %d\n\n" % (number, os.getpid())
        await send({"type": "http.response.body", "body": event, "more_body": True})
        await asyncio.sleep(TICK)
