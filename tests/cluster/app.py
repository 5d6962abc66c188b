"""What the hosts serve: it waits as long as it is asked to, 20 ms if it is not, and says which host it is on."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

HOST = os.environ["CLUSTER_HOST"].encode()
SLOWNESS = float(os.environ.get("CLUSTER_SLOWNESS", "1"))
WORK = 0.02


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    environ["wsgi.input"].read()
    time.sleep(float(environ.get("HTTP_X_WORK", WORK)) * SLOWNESS)
    start_response("200 OK", [("Content-Length", str(len(HOST)))])
    return [HOST]


async def asgi(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    assert scope["type"] == "http"
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(float(dict(scope["headers"]).get(b"x-work", WORK)) * SLOWNESS)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(HOST))]})
    await send({"type": "http.response.body", "body": HOST})
