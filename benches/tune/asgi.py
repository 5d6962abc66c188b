"""An ASGI application that awaits, and makes one call that blocks its event loop."""

from __future__ import annotations

import asyncio
import time
from typing import Any


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        raise NotImplementedError(scope["type"])
    await asyncio.sleep(0.03)
    time.sleep(0.02)  # noqa: ASYNC251  # the fault that is measured
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"done\n"})
