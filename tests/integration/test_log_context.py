"""An error of an ASGI application is logged in the context of its task, where agents look for what they have seen."""

from __future__ import annotations

import re

import pytest

from tests.harness import Site
from tests.harness.frames import CLOSE, Frames, handshake

pytestmark = pytest.mark.beyond_reference("agents are tried with the reference server in tests/agents")

MODULE = """\
import asyncio
import contextvars
import logging

SEEN = contextvars.ContextVar("seen", default="nothing")


class Seen(logging.Filter):
    def filter(self, record):
        record.msg = f"{record.msg} (seen: {SEEN.get()})"
        return True


logging.getLogger("gunicorn.error").addFilter(Seen())


async def application(scope, receive, send):
    path = scope["path"]
    SEEN.set(path)
    if "waits" in path:
        await asyncio.sleep(0)
    if scope["type"] == "websocket" and "open" in path:
        await send({"type": "websocket.accept"})
    if scope["type"] == "http" and "answered" in path:
        await send({"type": "http.response.start", "status": 500, "headers": []})
        await send({"type": "http.response.body", "body": b"answered"})
    if "leaves" in path:
        return
    raise ValueError(f"of {path}")
"""

REQUESTS = ("/", "/waits", "/answered", "/answered/waits", "/leaves", "/leaves/waits")
WEBSOCKETS = ("/ws", "/ws/waits", "/ws/open", "/ws/open/waits")


def test_the_context_of_the_task() -> None:
    with Site("worker_class = 'asgi'", app="app:application", files={"app.py": MODULE}) as server:
        for path in REQUESTS:
            assert server.get(path).status == 500
        for path in WEBSOCKETS:
            if "open" in path:
                with Frames(server.address, path) as socket:
                    got = socket.frame()
                    assert (got.first, got.code) == (CLOSE, 1011)
                    socket.put(CLOSE, got.payload).closed()
            else:
                with server.connect() as wire:
                    assert wire.send(handshake(path)).reply().status == 500
        for path in (*REQUESTS, *WEBSOCKETS):
            server.log.wait(rf"(Exception|Error) .*\(seen: {re.escape(path)}\)$")
