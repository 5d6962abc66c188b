"""What runs at the same time as what."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Pool
from tests.harness import WSGI_KINDS, Server, Site, room, until
from tests.harness.deadline import PATIENCE
from tests.harness.server import run
from tests.harness.wire import Reply, request


class Together:
    """Requests sent at once, each from a thread of its own."""

    def __init__(self, server: Server, *targets: str) -> None:
        self.replies: list[Reply] = []
        self.errors: list[str] = []
        self.server = server
        self.began = time.monotonic()
        self.threads = [threading.Thread(target=self._one, args=[target], daemon=True) for target in targets]
        for thread in self.threads:
            thread.start()

    def _one(self, target: str) -> None:
        try:
            self.replies.append(self.server.get(target))
        except (OSError, AssertionError) as error:
            self.errors.append(repr(error))

    def join(self, within: float = PATIENCE) -> float:
        for thread in self.threads:
            thread.join(within)
        assert not self.errors, self.errors
        return time.monotonic() - self.began


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """A file that lets waiting requests go when it appears."""
    path = tmp_path / "open"
    yield path
    path.touch()


def inside(gate: Path) -> int:
    return len(list(gate.parent.glob("open.in.*")))


def test_ten_threads_run_ten_requests(pool: Pool) -> None:
    server = pool.get(worker_class="gthread", threads=10)
    server.get("/hello")
    took = Together(server, *["/sleep?s=0.5"] * 10).join()
    assert 0.5 <= took < 10 * 0.5, "no sooner than one, and sooner than one after another"


def test_more_requests_than_threads_wait_their_turn(pool: Pool) -> None:
    server = pool.get(worker_class="gthread", threads=10)
    took = Together(server, *["/sleep?s=0.3"] * 20).join()
    assert 0.6 <= took < 20 * 0.3, "no sooner than two rounds, and sooner than one after another"


def test_all_threads_are_used(pool: Pool, gate: Path) -> None:
    server = pool.get(worker_class="gthread", threads=10)
    waiting = Together(server, *[f"/gate?open={gate}"] * 10)
    until(lambda: inside(gate) == 10, "ten requests are inside the application at once")
    gate.touch()
    waiting.join()


def test_a_blocked_thread_does_not_delay_the_others(pool: Pool, gate: Path) -> None:
    """Three of four threads are blocked: each request that comes is answered by the fourth."""
    server = pool.get(worker_class="gthread", threads=4)
    waiting = Together(server, *[f"/gate?open={gate}"] * 3)
    until(lambda: inside(gate) == 3, "three requests are inside the application")
    for _ in range(50):
        with server.connect() as wire:
            assert wire.get("/hello").status == 200
    with server.connect() as wire:
        for _ in range(50):
            assert wire.get("/hello").status == 200
    gate.touch()
    waiting.join()


@pytest.mark.beyond_reference("it reads nothing while its application runs")
@WSGI_KINDS
def test_uploads_are_taken_while_the_application_is_busy(pool: Pool, gate: Path, worker_class: str) -> None:
    """The only place to run is taken; the body of another request is read and kept meanwhile."""
    server = pool.get(worker_class=worker_class, header_timeout=20, **room(worker_class, 1))
    size = 8 << 20
    with server.connect() as wire:
        # The connection is known before the application blocks: a busy worker leaves new ones to its siblings.
        wire.send(request("POST", f"/gate?open={gate}.go", [("Content-Length", str(size))]))
        with server.connect() as blocker:
            blocker.send(request("GET", f"/gate?open={gate}"))
            until(lambda: inside(gate) == 1, "the application is busy")
            wire.send(b"u" * size)  # more than the kernel's buffers hold: this ends only if the server reads
            Path(f"{gate}.go").touch()
            gate.touch()
            assert blocker.reply().status == 200
        assert wire.reply().body.split()[1] == str(size).encode()


@pytest.mark.beyond_reference("it answers no client while one is slow")
def test_a_slow_upload_does_not_occupy_a_sync_worker(pool: Pool) -> None:
    server = pool.get(worker_class="sync", header_timeout=20)
    with server.connect() as slow:
        slow.send(request("POST", "/body", [("Content-Type", "a/b"), ("Content-Length", "10")]), b"12345")
        for _ in range(5):
            with server.connect(timeout=10) as wire:
                assert wire.get("/hello").status == 200
        slow.send(b"67890")
        assert slow.reply().json()["length"] == 10


def test_requests_spread_over_workers(pool: Pool) -> None:
    server = pool.get(worker_class="sync", workers=4)
    together = Together(server, *["/sleep?s=0.3"] * 4)
    together.join()
    assert len({reply.body for reply in together.replies}) >= 3


def test_threads_see_one_process(pool: Pool) -> None:
    server = pool.get(worker_class="gthread", threads=10)
    together = Together(server, *["/sleep?s=0.1"] * 10)
    together.join()
    assert {reply.body for reply in together.replies} == {str(server.worker_pid()).encode()}


def test_an_idle_server_uses_no_processor(pool: Pool) -> None:
    from tests.harness import proc

    server = pool.get(worker_class="gthread", threads=10)
    server.get("/hello")
    worker = server.worker_pid()
    before = proc.cpu_seconds(worker)
    time.sleep(1)  # this is the measurement, not a wait for something
    assert proc.cpu_seconds(worker) - before <= 0.05


COLLECTS = """
import gc
import itertools

heap = [{"a": [number]} for number in range(200_000)]
calls = itertools.count(1)
running = set()
overlaps = []


def application(environ, start_response):
    me = object()
    running.add(me)
    overlaps.append(len(running) > 1)
    for _ in range(1500):
        pass
    if next(calls) % 400 == 0:
        gc.collect()
    running.discard(me)
    body = f"{sum(overlaps)} {len(overlaps)}".encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


def test_calls_that_only_compute_do_not_take_turns() -> None:
    """A collection holds the GIL for a while, which is no reason to begin calls on other threads.

    Each would be interrupted by the others after the switch interval, and all would take as long as all together.
    """
    files = {"collects.py": COLLECTS}
    with Site("worker_class = 'gthread'\nthreads = 8\n", app="collects:application", files=files) as server:
        done = run("load", "-n", "10000", "-c", "32", "http://{}:{}/".format(*server.address))
        assert done.returncode == 0, done.stderr
        overlapping, calls = map(int, server.get("/").body.split())
        assert overlapping < calls / 10
