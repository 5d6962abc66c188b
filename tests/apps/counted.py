"""An application that keeps a ledger: a line for each call, of the request's id and the pid, in the file LEDGER.

`/?id=&s=&gate=` sleeps for `s` seconds, or waits until the file `gate` exists, and answers with JSON of what it got;
`/c?fifo=` keeps the GIL until the test opens that to write, `/locked` for good. `/board` has the scoreboards of all
workers, if the configuration calls `meet`.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import struct
import threading
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from tricorn.metrics.scoreboard import Scoreboard

MEET = """
def post_worker_init(worker):
    import counted

    counted.meet(worker)
"""
"""For a configuration file."""

spec: Any = None


def meet(worker: Any) -> None:
    global spec
    spec = worker.spec


def hold_the_gil(fifo: str) -> None:
    """C code that waits for a writer of the FIFO, and does not give up the interpreter's lock meanwhile."""
    c = ctypes.PyDLL(None)
    c.close(c.open(fifo.encode(), os.O_RDONLY))


def board() -> dict[str, Any]:
    size = len(spec.page)
    pages = [spec.pages[at : at + size] for at in range(0, len(spec.pages), size)]
    sent, taken = struct.unpack_from("2Q", spec.group)
    workers = {}
    for page in pages:
        seen = Scoreboard(page).read()
        if seen is not None:
            workers[seen.pid] = {
                "state": seen.state,
                "queue_time": Scoreboard(page).histogram("queue"),
                "oldest_wait": seen.oldest_wait,
                **seen.figures,
            }
    return {"workers": workers, "sent": sent, "taken": taken}


def note(text: str) -> None:
    if path := os.environ.get("LEDGER"):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, f"{text} {os.getpid()}\n".encode())
        os.close(descriptor)


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    path, given = environ["PATH_INFO"], dict(parse_qsl(environ["QUERY_STRING"]))
    if path == "/board":
        return answer(start_response, board())
    note(given.get("id", "-"))
    body = environ["wsgi.input"].read()
    if path == "/c":
        hold_the_gil(given["fifo"])
    elif path == "/locked":
        import stuck  # which only this application's process finds

        stuck.holds_the_lock_in_c()
    elif "gate" in given:
        end = time.monotonic() + 30
        while not os.path.exists(given["gate"]) and time.monotonic() < end:
            time.sleep(0.005)
    elif "s" in given:
        time.sleep(float(given["s"]))
    told = {
        "pid": os.getpid(),
        "thread": threading.get_ident(),
        "id": given.get("id"),
        "length": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "queue_time": environ["tricorn.queue_time"],
        "remote_port": environ.get("REMOTE_PORT"),
    }
    return answer(start_response, told)


def answer(start_response: Any, what: object) -> list[bytes]:
    text = json.dumps(what).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
    return [text]
