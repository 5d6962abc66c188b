"""Takes as long as its client says: GET /work?us=20000 sleeps for 20 ms, and answers with its pid."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

PR_SET_TIMERSLACK = 29

_thread = threading.local()
_libc = ctypes.CDLL(None)


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    answer = work(environ["QUERY_STRING"])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(answer)))])
    return [answer]


async def asgi(scope: dict[str, Any], receive: Callable[[], Any], send: Callable[..., Awaitable[None]]) -> None:
    """For servers without WSGI. Nothing is awaited while it works: what a coroutine that computes does to its loop."""
    if scope["type"] != "http":
        return
    answer = work(scope["query_string"].decode("ascii"))
    fields = [(b"content-type", b"text/plain"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": answer})


def work(query: str) -> bytes:
    if query.startswith("us="):
        sleep_exactly(int(query[3:]))
    return str(os.getpid()).encode()


def sleep_exactly(microseconds: int) -> None:
    if not hasattr(_thread, "precise"):
        # The kernel may let a thread sleep 50 microseconds longer, to save energy.
        _thread.precise = _libc.prctl(PR_SET_TIMERSLACK, 1)
    if microseconds:
        time.sleep(microseconds / 1e6)
