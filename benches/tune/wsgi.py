"""WSGI applications, a path each, whose best configuration follows from how a request spends its time."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

WITHOUT_GIL, WITH_GIL = ctypes.CDLL(None), ctypes.PyDLL(None)
"""The C library: calls give the GIL back, or hold it."""
MEMORY = 60 << 20
"""Bytes that each worker of `/memory` fills at its first request."""
LOOPS_PER_MILLISECOND = 50_000
"""Turns of the loop in `compute`, roughly; the unit of work is the turn, so that all configurations do the same."""


def wait() -> None:
    """Waits 50 ms in a call that gevent patches."""
    time.sleep(0.05)


def block() -> None:
    """Waits 50 ms in C without the GIL, which gevent does not patch."""
    WITHOUT_GIL.usleep(50_000)


def hold() -> None:
    """Waits 20 ms in C with the GIL held."""
    WITH_GIL.usleep(20_000)


def compute(milliseconds: float = 10) -> None:
    for _ in range(int(milliseconds * LOOPS_PER_MILLISECOND)):
        pass


def mixed() -> None:
    """Waits 90 % of its time, and computes for the rest."""
    time.sleep(0.045)
    compute(5)


@cache
def _filled() -> bytearray:
    return bytearray(os.urandom(1 << 16) * (MEMORY >> 16))


def memory() -> None:
    """Waits 50 ms in a worker that holds `MEMORY` for itself."""
    _filled()
    time.sleep(0.05)


_opening = threading.Lock()


@cache
def _open_pool() -> Any:
    from psycopg_pool import ConnectionPool

    return ConnectionPool(os.environ["DATABASE_URL"], min_size=5, max_size=5, timeout=30, open=True)


def pool() -> None:
    """Has PostgreSQL wait 50 ms, over one of the five connections of its process."""
    with _opening:
        connections = _open_pool()
    with connections.connection() as connection:
        connection.execute("SELECT pg_sleep(0.05)")


def second() -> None:
    """Waits a second in a call that gevent patches."""
    time.sleep(1)


PAGES: dict[str, Callable[[], None]] = {
    "/wait": wait,
    "/block": block,
    "/hold": hold,
    "/compute": compute,
    "/mixed": mixed,
    "/memory": memory,
    "/pool": pool,
    "/second": second,
}


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    PAGES[environ["PATH_INFO"]]()
    start_response("200 OK", [("Content-Length", "5")])
    return [b"done\n"]
