"""What never has to wait, and how far it is: each thing that is done takes a moment and is counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

PIECES = 3000
PIECE = b"x" * 100
MOMENT = 0.0002

done = 0


def work() -> None:
    """Seconds that are worked, not waited."""
    global done
    end = time.perf_counter() + MOMENT
    while time.perf_counter() < end:
        pass
    done += 1


def count() -> bytes:
    return str(done).encode()


def pieces() -> Iterator[bytes]:
    for _ in range(PIECES):
        work()
        yield PIECE


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterator[bytes] | list[bytes]:
    match environ["PATH_INFO"]:
        case "/stream":
            start_response("200 OK", [])
            return pieces()
        case "/work":
            work()
    body = count()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
