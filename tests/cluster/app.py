"""What the hosts serve: it waits as long as it is asked to, 20 ms if it is not, and says which host it is on.

A WebSocket is told the host when it is opened, and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HOST = os.environ["CLUSTER_HOST"].encode()
SLOWNESS = os.environ.get("CLUSTER_SLOWNESS")
"""A file that says how many times as long work takes on this host."""
WORK = 0.02


def seconds(asked: str | bytes | None) -> float:
    times = float(Path(SLOWNESS).read_text()) if SLOWNESS else 1
    return float(asked or WORK) * times


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    environ["wsgi.input"].read()
    time.sleep(seconds(environ.get("HTTP_X_WORK")))
    start_response("200 OK", [("Content-Length", str(len(HOST)))])
    return [HOST]


async def asgi(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    if scope["type"] == "websocket":
        await websocket(receive, send)
        return
    assert scope["type"] == "http"
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(seconds(dict(scope["headers"]).get(b"x-work")))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(HOST))]})
    await send({"type": "http.response.body", "body": HOST})


async def websocket(receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": HOST.decode()})
    while (await receive())["type"] != "websocket.disconnect":
        pass
