"""Requests, boots and workers that take too long: what the log says, and that no other client notices."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.conftest import Pool
from tests.harness import (
    CLOSE,
    EVENT_LOOPS,
    KINDS,
    THREAD_CLASSES,
    Load,
    Server,
    Site,
    at_once,
    configured,
    each,
    module,
    until,
)
from tests.harness.classes import THREADED
from tests.harness.server import free_port
from tests.harness.wire import Silent, Wire, request

pytestmark = pytest.mark.beyond_reference("its timeout is one of a silent worker, and says nothing of the request")

STUCK = {
    "/python": "spins_in_python",
    "/sleep": "sleeps_in_python",
    "/c": "holds_the_lock_in_c",
    "/blocks": "blocks_in_c",
}
# A greenlet that sleeps holds up no other one; what it waits for in C does.
WAYS = [f"{alias}-{path}" for alias in THREADED for path in ("/python", "/sleep", "/c")]
WAYS += ["gevent-/python", "gevent-/c", "gevent-/blocks", "asgi-/python", "asgi-/c"]
# A WSGI application, which holds up the loop.
WAYS += ["tornado-/sleep", "tornado-/c"]


@pytest.mark.parametrize("case", each(*WAYS))
def test_a_request_that_is_stuck_is_told_with_its_stack(case: str) -> None:
    """And a prober that opens new connections all the while never fails: another worker serves."""
    worker_class, _, path = case.partition("-")
    config = f"{configured(worker_class)}workers = 2\ntimeout = 1\n"
    with Site(config, app="stuck:application", workers=2) as server, server.connect() as wire:
        with Load(server.address, "/pid", clients=1, fields=CLOSE, pause=0.005) as prober:
            prober.settle(5)
            wire.send(request("GET", f"{path}?id=7"))
            (timed_out,) = server.log.wait(r"\[CRITICAL\] WORKER TIMEOUT \(pid:(\d+)\): ")
            victim = int(timed_out[1])
            until(lambda: victim not in server.worker_pids(), "the stuck worker goes")
            until(lambda: len(server.worker_pids()) == 2, "it is replaced")
            prober.settle(5)
            tally = prober.stop()
        assert b" 200 OK" not in wire.ended()
        text = server.log.text
        assert f"GET {path}?id=7" in text
        assert STUCK[path] in text, text
        assert "stuck.py" in text
        assert tally.failures == []


def answered(server: Server) -> int:
    try:
        return int(server.get("/pid").body)
    except (OSError, Silent):
        return 0


def test_requests_beside_the_stuck_one_are_answered_by_the_leaving_worker() -> None:
    with (
        Server("stuck:application", threads=3, timeout=2, graceful_timeout=8) as server,
        server.connect() as stuck,
        server.connect() as other,
    ):
        worker = server.worker_pid()
        stuck.send(request("GET", "/sleep"))
        began = time.monotonic()
        # It begins while the first one is stuck and ends after the first one's time is over.
        while time.monotonic() < began + 1.2:
            assert server.get("/pid").status == 200
        other.send(request("GET", "/short?s=1.6"))
        reply = other.reply()
        assert (reply.status, int(reply.body)) == (200, worker)
        server.log.wait("WORKER TIMEOUT")


@THREAD_CLASSES
def test_with_one_worker_another_comes_up(worker_class: str) -> None:
    with (
        Server("stuck:application", worker_class=worker_class, timeout=1) as server,
        server.connect() as wire,
    ):
        worker = server.worker_pid()
        wire.send(request("GET", "/c"))
        until(lambda: server.worker_pids() and worker not in server.worker_pids(), "another worker")
        assert until(lambda: answered(server), "it serves") != worker


@THREAD_CLASSES
def test_a_busy_worker_is_no_stuck_one(worker_class: str) -> None:
    """Requests below the limit, for longer than the limit."""
    with (
        Server("stuck:application", worker_class=worker_class, timeout=1) as server,
        Load(server.address, "/short?s=0.3", clients=2) as load,
    ):
        worker = server.worker_pid()
        load.settle(7 * at_once(worker_class, 2))
        assert server.worker_pid() == worker
        assert not server.log.matching("WORKER TIMEOUT")


@THREAD_CLASSES
def test_without_a_timeout_everything_may_take_its_time(worker_class: str) -> None:
    with Server("stuck:application", worker_class=worker_class, timeout=0) as server:
        assert server.get("/short?s=2").status == 200
        assert not server.log.matching("TIMEOUT")


SLOW_BOOT = "import time\ntime.sleep(60)\n"


def test_a_boot_that_takes_too_long_ends_the_first_start(tmp_path: Path) -> None:
    with Site("boot_timeout = 1\n", app="slow:application", files={"slow.py": SLOW_BOOT}, wait=False) as server:
        assert server.wait_exit() == 3
        assert server.log.matching("boot_timeout|did not become ready|not ready within")
        assert "slow.py" in server.log.text, "the stack says where it was"


def test_a_reload_that_boots_too_long_is_taken_back() -> None:
    good = module("good")
    files = {"slow.py": good}
    with Site("boot_timeout = 2\nworkers = 2\n", app="slow:application", workers=2, files=files) as server:
        before = set(server.worker_pids())
        server.write("slow.py", SLOW_BOOT)
        with Load(server.address, "/", clients=2, fields=CLOSE, pause=0.005) as load:
            load.settle(5)
            server.signal(signal.SIGHUP)
            until(lambda: set(server.worker_pids()) - before, "new workers try")
            until(lambda: set(server.worker_pids()) == before, "they are given up")
            load.settle(5)
            tally = load.stop()
        assert tally.failures == []
        server.log.wait("slow.py")
        server.write("slow.py", good)
        server.hup(workers=2)


@KINDS
@pytest.mark.parametrize("path", ["/naps", "/catches", "/python"])
def test_a_request_beyond_its_time_is_answered_504(pool: Pool, worker_class: str, path: str) -> None:
    server = pool.get("stuck:application", worker_class=worker_class, timeout=30, request_timeout=0.5)
    worker = server.worker_pid()
    began = time.monotonic()
    assert server.get(path).status == 504
    assert 0.4 < time.monotonic() - began < 8
    function = STUCK.get(path, "naps_in_python")
    server.log.wait(function)
    server.log.wait(f"GET {path}")
    assert server.worker_pid() == worker, "the worker stays"
    assert until(lambda: server.get("/pid").status == 200, "it serves")


@pytest.mark.parametrize(
    "case", each("sync-/c", "sync-/sleep", "gthread-/c", "gthread-/sleep", "gevent-/c", "asgi-/c", "tornado-/c")
)
def test_a_request_that_cannot_be_interrupted_is_answered_504_all_the_same(case: str) -> None:
    worker_class, _, path = case.partition("-")
    config = f"{configured(worker_class, 2)}timeout = 4\nrequest_timeout = 0.5\n"
    with Site(config, app="stuck:application") as server, server.connect() as get, server.connect() as head:
        get.send(request("GET", path))
        reply = get.reply()
        assert reply.status == 504
        assert reply.get("Date"), "RFC 9110 section 6.6.1"
        get.closed()
        server.log.wait(STUCK[path])
        if path == "/sleep" and worker_class == "gthread":
            # The other thread: what the monitor answers to HEAD has no content (RFC 9110 section 9.3.2).
            head.send(request("HEAD", path))
            bare = head.reply("HEAD")
            assert (bare.status, bare.get("content-length")) == (504, reply.get("content-length"))
            head.closed()


@THREAD_CLASSES
def test_a_timely_request_is_left_alone(worker_class: str) -> None:
    with Server("stuck:application", worker_class=worker_class, request_timeout=2) as server:
        with server.connect() as wire:
            for _ in range(3):
                assert wire.get("/short?s=0.9").status == 200
                if worker_class == "sync":
                    break
        assert not server.log.matching("request_timeout|TIMEOUT")


RECYCLED = {
    "max_requests": "max_requests = 20\nmax_requests_jitter = 10\n",
    "max_worker_lifetime": "max_worker_lifetime = 1\nmax_worker_lifetime_jitter = 1\n",
}


@pytest.mark.parametrize(
    ("case", "fields"),
    # Why a worker is replaced is the arbiter's affair, how it leaves the class's.
    each(
        "sync-max_requests",
        "sync-max_worker_lifetime",
        "gthread-max_requests",
        "gthread-max_worker_lifetime",
        "gevent-max_requests",
        "asgi-max_requests",
        values=[CLOSE, (), (), CLOSE, (), CLOSE],
    ),
)
def test_recycled_workers_lose_nothing(case: str, fields: tuple) -> None:
    worker_class, _, limit = case.partition("-")
    config = f"{configured(worker_class)}workers = 2\n{RECYCLED[limit]}"
    with (
        Site(config, workers=2) as server,
        Load(server.address, "/sleep?s=0.005", clients=4, fields=fields) as load,
    ):
        first = set(server.worker_pids())
        server.log.wait("Autorestarting worker" if limit == "max_requests" else "has served for", count=4)
        load.settle(20)
        tally = load.stop()
        until(lambda: len(server.worker_pids()) == 2, "two workers")
        # One worker with room for many may have all the keep-alive connections, and the other none to count.
        left = first & set(server.worker_pids())
        assert len(left) <= (worker_class not in THREADED and not fields)
    assert tally.failures == []


@THREAD_CLASSES
def test_a_worker_that_has_grown_is_replaced_after_its_requests(worker_class: str) -> None:
    limit = 150 << 20
    config = f"{configured(worker_class)}max_worker_memory = {limit}\n"
    with Site(config, app="stuck:application") as server:
        worker = server.worker_pid()
        with Load(server.address, "/short?s=0.01", clients=2, fields=CLOSE) as load:
            load.settle(5)
            assert server.get(f"/grow?bytes={200 << 20}").status == 200
            until(lambda: server.worker_pids() and worker not in server.worker_pids(), "replaced")
            load.settle(10)
            tally = load.stop()
        assert tally.failures == []
        (said,) = server.log.matching(rf"Replacing worker \(pid:{worker}\): it uses (\d+) MiB of memory, more than")
        assert int(said[1]) << 20 > limit


def test_only_a_quarter_of_the_workers_is_replaced_at_once_for_their_memory() -> None:
    # Every worker is above it from its first breath.
    config = "workers = 4\nmax_worker_memory = 1048576\nloglevel = 'debug'\n"
    with Site(config, workers=4) as server:
        server.log.wait(r"Replacing worker \(pid:\d+\): it uses", count=4)
        assert server.get("/hello").status == 200
        lines = list(server.log.lines)
    # As the arbiter tells it, in this order: a look at the processes takes so long that several come and go meanwhile.
    serving: set[str] = set()
    counts = []
    for line in lines:
        if found := re.search(r"Worker \(pid:(\d+)\) is ready", line):
            serving.add(found[1])
        elif found := re.search(r"Worker \(pid:(\d+)\) (is replaced|exited|was sent)", line):
            serving.discard(found[1])
            counts.append(len(serving))
    assert min(counts) >= 3, lines


def test_a_drain_delay_serves_on_while_readiness_says_no() -> None:
    admin = free_port()
    config = f"drain_delay = 4\ndrain_quiet = 0\nadmin_bind = '127.0.0.1:{admin}'\n"
    with Site(config, app="gallery:application") as server:
        with Wire(("127.0.0.1", admin)) as probe:
            assert probe.get("/readyz").status == 200
            assert probe.get("/healthz").status == 200
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        until(lambda: ready(admin) == 503, "readiness says no")
        assert server.get("/hello").status == 200, "requests are served all the same"
        assert ready(admin, "/healthz") == 200
        assert server.wait_exit() == 0
        assert time.monotonic() - began >= 3.9


def ready(port: int, path: str = "/readyz") -> int:
    with Wire(("127.0.0.1", port)) as probe:
        return probe.get(path).status


@pytest.mark.parametrize("worker_class", each("gthread", "gevent", "asgi"))
def test_a_dead_workers_log_line_has_what_it_was_doing(worker_class: str) -> None:
    with (
        Server("stuck:application", worker_class=worker_class) as server,
        server.connect() as one,
        server.connect() as two,
    ):
        worker = server.worker_pid()
        waits = "/naps" if worker_class in EVENT_LOOPS else "/sleep"
        one.send(request("GET", f"{waits}?one"))
        two.send(request("GET", "/short?s=20&two"))
        with server.connect() as third:
            assert third.get("/pid").status == 200
        os.kill(worker, signal.SIGKILL)
        server.log.wait(rf"Worker \(pid:{worker}\) was sent SIGKILL!")
        for target in (rf"GET {waits}\?one", r"GET /short\?s=20&two"):
            (found,) = server.log.wait(rf".*{target}.*")
            assert re.search(r"\d", found[0].partition("GET")[2]), found[0]
