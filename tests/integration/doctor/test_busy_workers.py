"""Requests that take long on threads, and workers with more to do than they can: what the log says, and what not."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.harness import Site, until
from tests.harness.classes import each

WSGI = """\
import ctypes, itertools, threading, time

C = ctypes.CDLL(None)


def waits(start):
    C.usleep(1_200_000)
    return [b""]


def computes(start):
    end = time.thread_time() + 1.2
    while time.thread_time() < end:
        for _ in range(5000): pass
    return [b""]


def streams(start):
    for _ in range(24):
        time.sleep(0.05)
        yield b"piece"


def sleeps(start):
    time.sleep(0.3)
    return [b""]


def application(environ, start_response):
    path = environ["PATH_INFO"]
    start_response("200 OK", [])
    return globals()[path[1:]](start_response) if path != "/" else [b""]
"""
ASGI = """\
import asyncio, time


async def steps(count):
    for _ in range(count):
        end = time.thread_time() + 0.004
        while time.thread_time() < end:
            for _ in range(2000): pass
        await asyncio.sleep(0)


async def application(scope, receive, send):
    if scope["type"] == "http":
        await steps(0 if scope["path"] == "/" else 20)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
"""
GREEN = WSGI.replace(
    "def sleeps(start):\n    time.sleep(0.3)\n",
    "def steps(start):\n    for _ in range(20):\n        end = time.thread_time() + 0.004\n"
    "        while time.thread_time() < end:\n            for _ in range(2000): pass\n        time.sleep(0.0001)\n",
)
"""After `sleep(0)` gevent would look for events once fifty callbacks have run, or none is left: the first of several
requests would run all of its steps before the hub sees the others, and truly hold them up."""
SLOW = r"\[WARNING\] GET /(\w+) (has run for|took) ([\d.]+) s in worker \(pid:(\d+)\), {name}\. (.*)"
CROWDED = r"Ready to run, but got no CPU for \d+ % of the time, at "
"""What is true of the same request where the machine has other work."""
WANTED = re.compile(r"waiting for CPU ([5-9]\d|100) %")
"""A short call is a long one where the machine has other work."""
BESIDE = "It delayed "
SATURATED = r"\[WARNING\] The worker \(pid:(\d+)\), {name}, (has been|was) saturated for ([\d.]+) s\. (.*)"


@pytest.mark.parametrize("worker_class", each("sync", "gthread"))
def test_a_request_that_takes_long_is_named_with_what_it_is_at(worker_class: str) -> None:
    threads = "" if worker_class == "sync" else "threads = 2\n"
    config = f"worker_class = {worker_class!r}\n{threads}doctor_slow_request = 0.3\n"
    pattern = SLOW.format(name=worker_class)
    with Site(config, app="slow:application", files={"slow.py": WSGI}) as server:
        assert server.get("/").status == 200
        assert server.get("/streams").body == b"piece" * 24, "each piece is progress"
        for path, says in (
            (
                "waits",
                r"Blocked in the system call (clock_)?nanosleep .*slow\.py:7 in waits.*"
                r" SLOW_REQUEST: blocked (9\d|100) %",
            ),
            ("computes", rf"(Running Python code at |{CROWDED}).*slow\.py:1[3-5] in computes"),
        ):
            assert server.get(f"/{path}").status == 200
            until(lambda path=path: len(told(server, pattern, path)) == 2, f"{path} is told twice")
            first, end = told(server, pattern, path)
            assert (first[2], end[2]) == ("has run for", "took")
            assert 0.3 <= float(first[3]) <= 1.2
            assert float(end[3]) >= 1.1
            assert int(first[4]) == server.worker_pid()
            assert re.search(says, first[5]), first[5]
            assert "Fix: " in first[5], first[5]
            assert "docs/diagnose/doctor.md#slow_request" in first[5], first[5]
        assert not told(server, pattern, "streams")


def told(server: Site, pattern: str, path: str) -> list[re.Match[str]]:
    return [found for found in server.log.matching(pattern) if found[1] == path]


@contextmanager
def load(server: Site, path: str, clients: int) -> Iterator[None]:
    """So many clients, each of which asks again and again."""
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            server.get(path)

    with ThreadPoolExecutor(clients) as pool:
        asking = [pool.submit(ask) for _ in range(clients)]
        try:
            yield
        finally:
            over.set()
        for each in asking:
            each.result()


@pytest.mark.parametrize(
    ("worker_class", "path", "clients"),
    [
        pytest.param("sync", "sleeps", 4, id="sync"),
        pytest.param("gthread", "sleeps", 8, id="gthread"),
        pytest.param("gevent", "steps", 12, id="gevent"),
        pytest.param("asgi-asyncio", "steps", 12, id="asgi-asyncio"),
        pytest.param("asgi-uvloop", "steps", 12, id="asgi-uvloop"),
    ],
)
def test_a_worker_that_cannot_keep_up_is_saturated_and_no_line_is_blamed(
    worker_class: str, path: str, clients: int
) -> None:
    name, _, loop = worker_class.partition("-")
    source = ASGI if name == "asgi" else GREEN if name == "gevent" else WSGI
    threads = 2 if name == "gthread" else 1
    config = f"worker_class = {name!r}\nthreads = {threads}\nasgi_loop = {loop or 'asyncio'!r}\n"
    config += "doctor_threshold = 0.02\n"
    with Site(config, app="busy:application", files={"busy.py": source}) as server:
        assert server.get("/").status == 200
        with load(server, f"/{path}", clients):
            server.log.wait(SATURATED.format(name=name))
        said = server.log.matching(SATURATED.format(name=name))[0]
        assert int(said[1]) == server.worker_pid()
        assert "docs/diagnose/doctor.md#saturated" in said[4], said[4]
        if name in ("sync", "gthread"):
            threads = "its thread was" if name == "sync" else "all 2 threads were"
            assert f"In every sample {threads} busy, and up to " in said[4], said[4]
            assert ("more workers, or use -k gthread" if name == "sync" else "more threads") in said[4], said[4]
        else:
            assert "Its loop was busy with many short callbacks" in said[4], said[4]
        ends = SATURATED.format(name=name).replace("(has been|was)", "(was)")
        until(lambda: server.log.matching(ends) or server.get("/") is None, "its end is told", every=0.05)
        held_up = [found[0] for found in server.log.matching(r"blocked for .*") if "busy.py" in found[0]]
        assert not [line for line in held_up if BESIDE in line and not WANTED.search(line)], server.log.text
