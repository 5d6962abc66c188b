"""The cases of plain HTTP. One record each."""

from __future__ import annotations

from benches.end_to_end.cases import DOCUMENT, Case
from benches.harness.load import Load

APPS = "benches.loops.apps"

HELLO = Case("asgi-hello", "13 bytes, keep-alive, no framework", f"{APPS}:hello", Load(), b"Hello, World!")
POST = Case(
    "asgi-post-10k",
    "POST of 10 KB, sent back",
    f"{APPS}:echo",
    Load("POST", headers=(("Content-Type", "application/json"),), body=DOCUMENT),
    DOCUMENT.encode(),
)
TORNADO = Case("tornado-hello", "13 bytes from tornado", "benches.loops.tornado_app:app", Load(), b"Hello, World!")
AIOHTTP = Case("aiohttp-hello", "13 bytes from aiohttp", "benches.loops.aiohttp_app:app", Load(), b"Hello, World!")
