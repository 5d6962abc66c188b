"""What waits costs nothing: connections, sockets, streams and calls in which nothing happens wake no thread."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness import ALL_CLASSES, Server, Wire, each, proc, until
from tests.harness.certificates import Authority
from tests.harness.classes import GREEN
from tests.harness.frames import Frames
from tests.harness.tls import SecureWire, client
from tests.harness.wire import request

PERIOD = 4.0
FOR_LONG = 3000
PER_SECOND = 10
"""Wake-ups of all threads of a worker: a hub is rung for once a second while a request waits in it."""
SOCKETS = each("sync", "gthread", "gevent", "eventlet", "asgi-asyncio", "asgi-uvloop", "aiohttp")
LOOPS = each("gthread", "gevent", "asgi-asyncio", "asgi-uvloop", "tornado", "aiohttp")
STREAM = f"/stream?count=3&rest={FOR_LONG}"
UNREAD = f"/stream?count=60&size=65536&rest={FOR_LONG}"
"""More than its client's socket takes."""


def server_of(alias: str, room: int = 4, **options: Any) -> Server:
    worker_class, _, loop = alias.partition("-")
    if loop:
        options["asgi_loop"] = loop
    if worker_class == "gthread":
        options["threads"] = room
    app = "gallery" if worker_class == "tornado" else "resting"
    # Where requests spend their time is asked of them less and less often, and a slow one is told once.
    own = {"profile_after": 0, "doctor_slow_request": 0}
    return Server(f"{app}:application", worker_class=worker_class, keep_alive=FOR_LONG, **own, **options)


def until_quiet(pid: int) -> None:
    until(lambda: proc.is_quiet(pid), "nothing happens in the worker")


def wake_ups(pid: int) -> int:
    """How often any thread of a worker woke in the period."""
    until_quiet(pid)
    before = proc.wake_ups(pid)
    time.sleep(PERIOD)  # the period that is measured
    return sum(count - before.get(task, 0) for task, count in proc.wake_ups(pid).items())


def rests(pid: int, most: int) -> None:
    """Waits for a period in which its threads wake no more often: what wakes them by itself does so in each."""
    until(lambda: wake_ups(pid) <= most, f"it wakes {most} times at most")


@contextmanager
def asked(server: Server, target: str) -> Iterator[Wire]:
    """A request under way whose answer, or its end, does not come."""
    with server.connect() as wire:
        wire.send(request("GET", target))
        if target != f"/sleep?s={FOR_LONG}":
            assert wire.sock.recv(1)
        yield wire


@pytest.mark.parametrize("worker_class", SOCKETS)
def test_a_websocket_in_which_nothing_is_said_wakes_no_thread_and_has_one_descriptor(worker_class: str) -> None:
    with server_of(worker_class) as server, ExitStack() as stack:
        server.get("/hello")
        pid = server.worker_pid()
        until_quiet(pid)
        before = proc.descriptors(pid)
        count = 1 if worker_class == "sync" else 3
        for _ in range(count):
            assert stack.enter_context(Frames(server.address, "/socket")).message() == "hello"
        rests(pid, 1)
        # The application that takes a socket has a duplicate.
        assert proc.descriptors(pid) - before <= count * (2 if worker_class in ("sync", "gthread", *GREEN) else 1)


@ALL_CLASSES
def test_an_idle_connection_over_tls_wakes_no_thread_and_has_one_descriptor(worker_class: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    files = {"certfile": str(issued.certificate), "keyfile": str(issued.key)}
    with server_of(worker_class, **files) as server, ExitStack() as stack:

        def connect() -> None:
            wire = stack.enter_context(SecureWire(server.address, client(authority)))
            assert wire.get("/hello").status == 200

        connect()
        pid = server.worker_pid()
        until_quiet(pid)
        before = proc.descriptors(pid)
        for _ in range(3):
            connect()
        rests(pid, 0)
        assert proc.descriptors(pid) - before == 3


@pytest.mark.parametrize("target", ["/sleep", STREAM, UNREAD], ids=["held", "silent stream", "unread stream"])
@ALL_CLASSES
def test_a_request_that_waits_wakes_hardly_a_thread(worker_class: str, target: str) -> None:
    target = f"/sleep?s={FOR_LONG}" if target == "/sleep" else target
    with server_of(worker_class) as server:
        server.get("/hello")
        with asked(server, target):
            rests(server.worker_pid(), int(PER_SECOND * PERIOD))


@pytest.mark.parametrize("worker_class", LOOPS)
def test_a_stream_that_says_nothing_has_one_descriptor(worker_class: str) -> None:
    with server_of(worker_class, room=24) as server, ExitStack() as stack:
        stack.enter_context(asked(server, STREAM))
        pid = server.worker_pid()
        until_quiet(pid)
        before = proc.descriptors(pid)
        for _ in range(20):
            stack.enter_context(asked(server, STREAM))
        until_quiet(pid)
        assert proc.descriptors(pid) - before == 20


@pytest.mark.parametrize("worker_class", LOOPS)
def test_requests_beside_those_that_wait_are_answered_as_promptly_as_in_an_idle_worker(worker_class: str) -> None:
    def latency(server: Server) -> float:
        """The median of requests with pauses in which a worker goes to sleep."""
        times = []
        with server.connect() as wire:
            for _ in range(25):
                time.sleep(0.02)  # the pause that matters
                began = time.perf_counter()
                assert wire.get("/hello").status == 200
                times.append(time.perf_counter() - began)
        return statistics.median(times)

    with server_of(worker_class) as server, ExitStack() as stack:
        idle = latency(server)
        for target in (f"/sleep?s={FOR_LONG}", STREAM):
            stack.enter_context(asked(server, target))
        assert latency(server) < 5 * idle


def test_what_comes_while_a_call_that_has_waited_keeps_the_gil_is_read(tmp_path: Path) -> None:
    """The thread that waits for events comes back for the GIL, and the monitor has to go on in its place."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with server_of("gthread") as server, server.connect() as held:
        held.send(request("GET", f"/gil?s=0.5&fifo={fifo}"))
        until(lambda: fifo.with_name("fifo.in").exists(), "the call is about to keep the GIL")
        try:
            with server.connect() as wire:
                wire.send(b"NONSENSE\r\n\r\n")
                assert wire.reply().status == 400
        finally:
            os.close(os.open(fifo, os.O_WRONLY))
        assert held.reply().status == 200
