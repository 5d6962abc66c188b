"""Calls that are still running when the worker ends quickly, and what should run at its end nevertheless.

`TRICORN_TEST_END` names a file to which the exit handlers write.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Iterable
from typing import Any


def note(what: str) -> None:
    with open(os.environ["TRICORN_TEST_END"], "a") as file:
        file.write(f"{what} {os.getpid()}\n")


def ends_with_the_others() -> None:
    """A thread that is no daemon: the interpreter waits for it before the exit handlers."""
    threading.main_thread().join()
    note("thread")


def spin() -> None:
    while True:
        pass


def nap() -> None:
    while True:
        time.sleep(0.001)


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    if environ["PATH_INFO"] in BUSY:
        print("stays in the buffer until the end")
        BUSY[environ["PATH_INFO"]]()
    start_response("200 OK", [("Content-Length", "0")])
    return []


BUSY = {"/spin": spin, "/nap": nap}
atexit.register(note, "atexit")
threading.Thread(target=ends_with_the_others).start()
