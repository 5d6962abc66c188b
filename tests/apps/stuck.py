"""Requests that do not come back: `/python`, `/sleep`, `/blocks` (in C), `/c` (which keeps the GIL), each until the
process ends.

`/short?s=0.2` and `/pid` come back; `/short?s=0.2&tell=1` says that it has begun. The functions have names that a stack
in the log shows.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl


def spins_in_python() -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pass


def sleeps_in_python() -> None:
    time.sleep(60)


def naps_in_python() -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.01)


def blocks_in_c() -> None:
    """Waits where no monkey-patching reaches, and lets other threads run."""
    library = ctypes.CDLL(None)
    left = 60
    while left:  # a signal wakes it
        left = library.sleep(left)


def holds_the_lock_in_c() -> None:
    """Locks a mutex twice: no signal interrupts that, and PyDLL does not give up the interpreter's lock."""
    library = ctypes.PyDLL(None)
    mutex = ctypes.create_string_buffer(256)
    library.pthread_mutex_init(mutex, None)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)


STUCK = {
    "/python": spins_in_python,
    "/sleep": sleeps_in_python,
    "/naps": naps_in_python,
    "/blocks": blocks_in_c,
    "/c": holds_the_lock_in_c,
}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = dict(parse_qsl(environ["QUERY_STRING"]))
    if function := STUCK.get(environ["PATH_INFO"]):
        function()
    if environ["PATH_INFO"] == "/short":
        if "tell" in given:
            print("begun", flush=True)
        time.sleep(float(given["s"]))
    if environ["PATH_INFO"] == "/catches":
        try:
            naps_in_python()
        except Exception:  # what a framework does
            pass
    if environ["PATH_INFO"] == "/grow":
        HOARD.append(b"x" * int(given["bytes"]))
    body = str(os.getpid()).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


HOARD: list[bytes] = []
