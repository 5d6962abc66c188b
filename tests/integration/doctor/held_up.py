"""An application that holds up its worker in many ways, each in a function and at a line of its own (`# here`).

It is imported by the workers under test, and by the table of tests, which reads its lines.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import gc
import json
import os
import re
import sqlite3
import sys
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

with suppress(ImportError):
    import psycopg
with suppress(ImportError):
    import psycopg2
with suppress(ImportError):
    import pycurl
with suppress(ImportError):
    from confluent_kafka import Producer
with suppress(ImportError):
    from sqlalchemy.exc import TimeoutError as Exhausted
    from sqlalchemy.pool import QueuePool

SECONDS = 0.4
PROCESSOR_GROUPS = Path("/sys/fs/cgroup/cpu")
C = ctypes.CDLL(None)
KEEPS = ctypes.PyDLL(None)
"""Whose functions are called with the GIL held."""
HERE = Path(os.environ.get("HELD_UP", "."))
"""Where the test keeps its files."""


def original(module: str, name: str) -> Any:
    """What a patched module had before: another thread, or a lock that stops it."""
    if "gevent.monkey" in sys.modules:
        from gevent.monkey import get_original

        return get_original(module, name)
    if "eventlet.patcher" in sys.modules:
        from eventlet.patcher import original as unpatched

        return getattr(unpatched(module), name)
    return getattr(__import__(module), name)


def ready() -> None:
    """The first request, for which nothing is told."""


def sleeps() -> None:
    time.sleep(SECONDS)  # here


def silent() -> int:
    """The port of a server that closes a connection after a while, and says nothing before."""
    return int((HERE / "port").read_text())


def psycopg2_connects() -> None:
    try:
        psycopg2.connect(host="127.0.0.1", port=silent(), sslmode="disable", gssencmode="disable")  # here
    except psycopg2.OperationalError:
        pass


def psycopg_connects() -> None:
    try:
        psycopg.connect(host="127.0.0.1", port=silent(), sslmode="disable", gssencmode="disable")  # here
    except psycopg.OperationalError:
        pass


def flushes() -> None:
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    producer.produce("topic", b"1")
    producer.flush(SECONDS)  # here
    producer.purge()


def transfers() -> None:
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, f"http://127.0.0.1:{silent()}/")
    try:
        curl.perform()  # here
    except pycurl.error:
        pass
    curl.close()


def waits_for_sqlite() -> None:
    path = HERE / f"{os.getpid()}.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    waits = sqlite3.connect(path, timeout=SECONDS, isolation_level=None)
    try:
        waits.execute("BEGIN IMMEDIATE")  # here
    except sqlite3.OperationalError:
        pass
    waits.close()
    holder.close()


def waits_for_file() -> None:
    with (HERE / "locked").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # here


def waits_for_lock() -> None:
    lock = original("_thread", "allocate_lock")()
    lock.acquire()
    lock.acquire(True, SECONDS)  # here


def waits_for_pool() -> None:
    pool = QueuePool(lambda: sqlite3.connect(":memory:"), pool_size=1, max_overflow=0, timeout=SECONDS)
    taken = pool.connect()
    try:
        pool.connect()  # here
    except Exhausted:
        taken.close()


def hard() -> str:
    """A text whose match takes about so long on this machine: a character doubles it."""
    length, took = 18, 0.0
    while took < SECONDS / 8:
        length += 1
        begin = time.thread_time()
        re.match("(a+)+b", "a" * length)
        took = time.thread_time() - begin
    return "a" * (length + 3)


HARD = hard()


def matches() -> None:
    re.match("(a+)+b", HARD)  # here


def computes() -> None:
    end = time.thread_time() + SECONDS
    number = 0
    while time.thread_time() < end:
        for _ in range(2000):
            number += 1  # in one of these lines


def asks_the_time() -> None:
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end: pass  # here  # fmt: skip  # noqa: E701


def compresses() -> None:
    zlib.compress(DATA, 9)  # here


def keeps_the_gil() -> None:
    KEEPS.usleep(int(SECONDS * 1e6))  # here


def another_keeps_the_gil() -> None:
    over: list[bool] = []

    def keeps() -> None:
        KEEPS.usleep(int(SECONDS * 1e6))  # the holder
        over.append(True)

    original("_thread", "start_new_thread")(keeps, ())
    while not over: pass  # here  # fmt: skip  # noqa: E701


def collects() -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end: gc.collect()  # here  # fmt: skip  # noqa: E701


def starves() -> None:
    """The thread may compute, and gets a twentieth of a processor for it."""
    end = time.thread_time() + 0.03
    with starved(threading.get_native_id()):
        while time.thread_time() < end: pass  # here  # fmt: skip  # noqa: E701


def may_throttle() -> bool:
    """Whether a quota of processor time can be given to a single thread (cgroups of version 1, root)."""
    return os.access(PROCESSOR_GROUPS / "tasks", os.W_OK) and (PROCESSOR_GROUPS / "cpu.cfs_quota_us").exists()


@contextmanager
def starved(thread: int) -> Iterator[None]:
    """By a quota; where there is none, by a neighbour (`busy_processor`), before whom the thread gives way."""
    if may_throttle():
        group = PROCESSOR_GROUPS / f"tricorn-test-{os.getpid()}"
        group.mkdir()
        (group / "cpu.cfs_quota_us").write_text("5000")  # in each 100 ms
        (group / "tasks").write_text(str(thread))
        try:
            yield
        finally:
            (PROCESSOR_GROUPS / "tasks").write_text(str(thread))
            group.rmdir()
        return
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(thread, {min(processors)})
    os.setpriority(os.PRIO_PROCESS, thread, 19)
    yield
    os.sched_setaffinity(thread, processors)
    os.setpriority(os.PRIO_PROCESS, thread, 0)


CASES: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        ready,
        sleeps,
        psycopg2_connects,
        psycopg_connects,
        flushes,
        transfers,
        waits_for_sqlite,
        waits_for_file,
        waits_for_lock,
        waits_for_pool,
        matches,
        computes,
        asks_the_time,
        compresses,
        keeps_the_gil,
        another_keeps_the_gil,
        collects,
        starves,
    )
}
DATA = os.urandom(1 << 20) * 12


RUBBISH: list[list[object]] = [[] for _ in range(500_000)]


def answer(path: str) -> bytes:
    begin = time.monotonic()
    CASES[path.strip("/")]()
    return json.dumps(time.monotonic() - begin).encode()


def wsgi(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    body = answer(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


async def asgi(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    if scope["type"] == "http":
        await asyncio.sleep(0)
        body = answer(scope["path"])
        fields = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": body})


def tornado() -> Any:
    from tornado.web import Application, RequestHandler

    class Handler(RequestHandler):
        async def get(self) -> None:
            self.write(answer(self.request.path))

    return Application([(".*", Handler)])
