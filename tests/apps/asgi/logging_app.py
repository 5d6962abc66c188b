"""Says things as tests/apps/logging_app.py does, for event loops: `/print`, `/logging`, `/raise`, `/pid`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]


async def application(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    if scope["type"] != "http":
        raise ValueError(f"{scope['type']} is nothing for this application")
    what, text = scope["path"].strip("/"), scope["query_string"].decode()
    if what == "print":
        print(text, "printed", flush=True)
        print(text, "to stderr", file=sys.stderr, flush=True)
        os.write(1, f"{text} by C\n".encode())
    elif what == "logging":
        logging.getLogger("gunicorn.error").info("%s by logging", text)
    elif what == "raise":
        raise ValueError(text)
    body = dict(scope["headers"]).get(b"x-from-hook", b"%d" % os.getpid())
    fields = [(b"content-length", b"%d" % len(body)), (b"x-answer", b"yes")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})
