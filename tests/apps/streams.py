"""Responses that last, over WSGI; the twins for other interfaces have the same paths.

`/ticks` sends an event again and again, `/silent` one and then nothing, `/half` never ends its event, `/text` is no
event stream. Each says in the log when it has ended.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import tricorn

TICK = 0.05
PIECES = {"/ticks": b"data: tick\n\n", "/half": b"data: half\n", "/text": b"text\n"}


def kind(path: str) -> str:
    return "text/plain" if path == "/text" else "text/event-stream"


def say(what: str) -> None:
    # One write: `print` makes two, and another thread's may come in between.
    sys.stderr.write(f"{what}\n")
    sys.stderr.flush()


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterator[bytes]:
    path = environ["PATH_INFO"]
    start_response("200 OK", [("Content-Type", kind(path))])
    try:
        if path == "/silent":
            yield b"data: begun\n\n"
            tricorn.leaving().wait()
            say("knows /silent")
        else:
            while True:
                yield PIECES[path]
                time.sleep(TICK)
    finally:
        say(f"ended {environ['REQUEST_METHOD']} {path}")
