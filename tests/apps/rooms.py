"""python-socketio as its documentation has it under ASGI: sessions that poll, in the memory of their process.

`count` answers with the pid and how often this session has asked.
"""

from __future__ import annotations

import os
from typing import Any

import socketio

server = socketio.AsyncServer(async_mode="asgi", ping_interval=1, ping_timeout=30)
application = socketio.ASGIApp(server)


@server.event
async def connect(sid: str, environ: dict[str, Any]) -> None:
    await server.save_session(sid, {"count": 0})


@server.event
async def count(sid: str) -> list[int]:
    async with server.session(sid) as session:
        session["count"] += 1
        return [os.getpid(), session["count"]]
