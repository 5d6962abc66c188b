"""An application whose work is of a chosen kind: waiting for a database, computing, or both.

`IO_BOUND` and `CPU_BOUND` are percentages of a second that each request spends in PostgreSQL's `pg_sleep` and in a
Python loop. With them one sees what a worker class, a number of workers or of threads does to an application.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import database
import psycopg2

IO_SECONDS = float(os.environ.get("IO_BOUND", "50")) / 100
CPU_SECONDS = float(os.environ.get("CPU_BOUND", "0")) / 100

if IO_SECONDS and database.in_worker():
    # While the worker boots, so that the first request does not pay for it.
    database.url()


class Connections(threading.local):
    """One connection per thread: a psycopg2 connection runs one query at a time."""

    open: Any = None


connections = Connections()


def wait_for_the_database(seconds: float) -> None:
    if connections.open is None or connections.open.closed:
        connections.open = psycopg2.connect(database.url())
        connections.open.autocommit = True
    with connections.open.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s)", (seconds,))


def compute(seconds: float) -> int:
    """Keeps this thread computing for `seconds` of processor time, however many others compete for the processor."""
    end = time.thread_time() + seconds
    rounds = 0
    while time.thread_time() < end:
        for _ in range(1000):
            rounds += 1
    return rounds


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    began = time.perf_counter()
    if IO_SECONDS:
        wait_for_the_database(IO_SECONDS)
    if CPU_SECONDS:
        compute(CPU_SECONDS)
    took = time.perf_counter() - began
    body = f"worker {os.getpid()}, thread {threading.current_thread().name}: {took:.3f} s\n".encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
