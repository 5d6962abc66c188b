"""The promises of the thread workers, for workers whose requests wait side by side: stops, limits, deaths, hooks."""

from __future__ import annotations

import itertools
import os
import re
import signal
import threading
import time
from collections import Counter
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.apps.counted import MEET
from tests.harness import CLOSE, EVENT_LOOPS, GREEN, GREEN_CLASSES, Load, Server, Site, Wire, each, until
from tests.harness.deadline import AT_ONCE
from tests.harness.marked import calls
from tests.harness.site import replaced, rests
from tests.harness.wire import Silent, request

pytestmark = pytest.mark.beyond_reference("there a worker that is told to leave drops some, and its timeout is another")


GEVENT = pytest.mark.parametrize("worker_class", each("gevent"))
"""For what eventlet's hub has no part in: it would take as long again."""
LIMIT = 3
"""Seconds of a request, where others are to end in time: a busy machine takes a second of them."""
SIDE_BY_SIDE = pytest.mark.parametrize("worker_class", each("gevent", *EVENT_LOOPS))


def green(worker_class: str, **options: Any) -> Server:
    return Server("green:application", worker_class=worker_class, env={"GREEN": worker_class}, **options)


def asked(server: Server, stack: ExitStack, *targets: str) -> list[Wire]:
    """Requests that are on their way, each on a connection of its own, in this order."""
    wires = [stack.enter_context(server.connect()) for _ in targets]
    for wire, target in zip(wires, targets, strict=True):
        wire.send(request("GET", target))
    return wires


def statuses(wires: list[Wire]) -> list[int]:
    return [wire.reply().status for wire in wires]


def in_the_application(server: Server, count: int) -> None:
    """Waits until so many `/hold` requests wait in the only worker."""
    until(lambda: sum(event.startswith("holding") for event in server.get("/events").json()) >= count, "they wait")


# Stops, reloads, successors.


@SIDE_BY_SIDE
def test_reloads_and_the_end_lose_none_of_many_that_wait(worker_class: str) -> None:
    with (
        Server(worker_class=worker_class, workers=2) as server,
        Load(server.address, "/sleep?s=0.15", clients=40) as load,
    ):
        load.settle(80)
        for _ in range(2):
            replaced(server, lambda: server.signal(signal.SIGHUP))
            load.settle(40)
        load.leaving()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        tally = load.join()
    assert tally.failures == []


@SIDE_BY_SIDE
def test_workers_that_have_served_their_number_lose_none_of_many_that_wait(worker_class: str) -> None:
    options = {"max_requests": 60, "max_requests_jitter": 40}
    with (
        Server(worker_class=worker_class, workers=2, **options) as server,
        Load(server.address, "/sleep?s=0.1", clients=24) as load,
    ):
        server.log.wait("Autorestarting worker", count=2)
        load.settle(40)
        tally = load.stop()
    assert tally.failures == []


@GREEN_CLASSES
def test_a_preloaded_application_is_patched_and_reloads(worker_class: str) -> None:
    with (
        Server(worker_class=worker_class, workers=2, preload=True) as server,
        Load(server.address, "/sleep?s=0.1", clients=16) as load,
    ):
        load.settle(50)
        with ExitStack() as stack:
            began = time.monotonic()
            assert statuses(asked(server, stack, *["/sleep?s=0.5"] * 16)) == [200] * 16
            assert time.monotonic() - began < 4, "not one after the other"
        replaced(server, lambda: server.signal(signal.SIGHUP))
        load.settle(50)
        tally = load.stop()
    assert tally.failures == []
    assert "Traceback" not in server.log.text


@GREEN_CLASSES
def test_a_stop_lets_all_that_wait_finish(worker_class: str) -> None:
    with green(worker_class) as server, ExitStack() as stack:
        held = asked(server, stack, *(f"/hold?id=n{nr}&s=1&then=goes_on" for nr in range(3)))
        in_the_application(server, 3)
        wires = asked(server, stack, *["/sleeps?s=0.7"] * 20)
        assert server.get("/pid").status == 200
        for nr in range(3):
            server.get(f"/kill?id=n{nr}")
        server.signal(signal.SIGTERM)
        assert statuses([*held, *wires]) == [200] * 23
        assert server.wait_exit() == 0
        assert "Traceback" not in server.log.text


@GEVENT
def test_what_does_not_finish_in_time_is_ended(worker_class: str) -> None:
    with green(worker_class, graceful_timeout=1) as server, ExitStack() as stack:
        wires = asked(server, stack, *(f"/hold?id=n{nr}" for nr in range(5)))
        in_the_application(server, 5)
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.wait_exit(AT_ONCE) == 0
        assert time.monotonic() - began > 0.8
        assert statuses(wires) == [500] * 5


@pytest.mark.parametrize("worker_class", each(*GREEN, *EVENT_LOOPS))
def test_signals_reach_a_worker_that_is_idle_and_one_that_is_busy(worker_class: str) -> None:
    with Server(worker_class=worker_class, workers=2) as server:
        idle, busy = server.worker_pids()
        assert server.get("/hello").status == 200
        os.kill(idle, signal.SIGTERM)
        until(lambda: idle not in server.worker_pids(), "it leaves", within=AT_ONCE)
        until(lambda: len(pids := server.worker_pids()) == 2 and all(map(rests, pids)), "another serves")
        with Load(server.address, clients=4, timeout=20) as load:
            load.settle(50)
            os.kill(busy, signal.SIGTERM)
            until(lambda: busy not in server.worker_pids(), "it leaves", within=AT_ONCE)
            load.settle(50)
            assert load.stop().failures == []


# Time limits.


@GEVENT
def test_a_request_that_merely_waits_is_not_stuck(worker_class: str) -> None:
    """Longer than `timeout`, alone and beside others that come and go."""
    with green(worker_class, timeout=1) as server, ExitStack() as stack:
        worker = server.worker_pid()
        wires = asked(server, stack, *["/sleeps?s=1.8"] * 3)
        assert wires[0].still_open(1.2)
        stack.enter_context(Load(server.address, "/light?id=x", clients=2)).settle(50)
        assert statuses(wires) == [200] * 3
        assert server.worker_pid() == worker
        assert not server.log.matching("TIMEOUT")


@pytest.mark.parametrize("case", each("gevent-spins", "gevent-blocks"))
def test_a_request_that_holds_up_the_others_is_told_and_its_worker_replaced(case: str) -> None:
    """Those that it held up are answered when it lets them; those that come are answered by the successor."""
    worker_class, _, deed = case.partition("-")
    path, function = f"/{deed}?s=2.5", f"do_{deed}"
    with green(worker_class, timeout=1, graceful_timeout=10) as server, ExitStack() as stack:
        worker = server.worker_pid()
        waiting = asked(server, stack, *["/sleeps?s=1"] * 5)
        assert waiting[-1].still_open(0.2)
        (stuck,) = asked(server, stack, path)
        server.log.wait(rf"\[CRITICAL\] WORKER TIMEOUT \(pid:{worker}\)")
        told = server.log.wait("has been running for .* seconds")
        assert all(f"GET {path}" in line.string for line in told), server.log.text
        server.log.wait(function)
        until(lambda: set(server.worker_pids()) - {worker}, "a successor")
        assert until(lambda: pid(server), "it serves") != worker
        assert statuses([*waiting, stuck]) == [200] * 6
        until(lambda: worker not in server.worker_pids(), "the worker leaves")
        assert len(server.log.matching("WORKER TIMEOUT")) == 1


def pid(server: Server) -> int:
    try:
        return int(server.get("/pid").body)
    except (OSError, Silent):
        return 0


@GREEN_CLASSES
def test_a_request_that_waits_too_long_is_ended_and_no_other(worker_class: str) -> None:
    with green(worker_class, request_timeout=LIMIT) as server, ExitStack() as stack:
        worker = server.worker_pid()
        early = asked(server, stack, "/sleeps?s=30", "/naps?s=30", "/sleeps?s=0.3")
        assert early[0].still_open(LIMIT - 0.5)
        later = asked(server, stack, *["/sleeps?s=0.7"] * 10)
        assert statuses(early) == [504, 504, 200]
        assert statuses(later) == [200] * 10
        assert server.worker_pid() == worker
        for path, function in {"/sleeps": "do_sleeps", "/naps": "do_naps"}.items():
            server.log.wait(rf"Error handling request .*{path}.*request_timeout")
            server.log.wait(function)
        assert len(server.log.matching("Error handling request")) == 2


@GREEN_CLASSES
def test_the_log_says_where_a_late_request_was(worker_class: str) -> None:
    """One that waits is on no thread's stack; the one that computes is on the hub's."""
    with green(worker_class, request_timeout=1) as server, ExitStack() as stack:
        waiting = asked(server, stack, "/sleeps?s=30")
        assert statuses(waiting) == [504]
        computing = asked(server, stack, "/spins?s=4")
        assert statuses(computing) == [504]
        for path, function in (("/sleeps", "do_sleeps"), ("/spins", "do_spins")):
            (told,) = server.log.wait(rf"GET {path}\S* has been running for \S+ seconds \(request_timeout\)\.(.*)")
            assert told[1] == " Python stack, most recent call first:", server.log.text
            lines = server.log.lines[server.log.lines.index(told.string) + 1 :]
            frames = list(takewhile(lambda line: line.startswith('  File "'), lines))
            assert any(frame.endswith(f" in {function}") for frame in frames), frames


@GEVENT
def test_a_late_request_that_does_not_end_is_answered_504_all_the_same(worker_class: str) -> None:
    with green(worker_class, request_timeout=1) as server, ExitStack() as stack:
        worker = server.worker_pid()
        began = time.monotonic()
        (stuck,) = asked(server, stack, "/blocks?s=5")
        assert statuses([stuck]) == [504]
        assert time.monotonic() - began < 4.9, "the monitor answers, not the hub"
        server.log.wait("do_blocks")
        assert server.get("/light?id=x").status == 200, "the hub turns again"
        assert server.worker_pid() == worker


@GEVENT
def test_the_exception_for_a_late_request_never_meets_another(worker_class: str) -> None:
    """They end when the limit is reached: it is on its way while the next request begins in the same greenlet."""
    limit, clients, each_asks = 0.5, 8, 6
    answers: Counter[int] = Counter()
    with green(worker_class, request_timeout=limit) as server:

        def ask(client: int) -> None:
            for nr in range(each_asks):
                seconds = limit - 0.012 + (client * each_asks + nr) % 24 / 1000
                with server.connect() as wire:
                    answers[wire.get(f"/sleeps?s={seconds:.4f}", *CLOSE).status] += 1
                with server.connect() as wire:
                    for _ in range(5):
                        assert wire.get("/light?id=x&s=0.002").status == 200
                        answers[0] += 1

        threads = [threading.Thread(target=ask, args=[nr]) for nr in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers[0] == clients * each_asks * 5
        assert answers[200] + answers[504] == clients * each_asks
        assert len(server.log.matching("Error handling request")) == answers[504]
        assert not server.log.matching("GET /light")


# Deaths.


@GEVENT
def test_a_dead_worker_is_told_with_all_it_was_running(worker_class: str) -> None:
    number = signal.SIGSEGV
    with green(worker_class, expects="SIGSEGV") as server, ExitStack() as stack:
        worker = server.worker_pid()
        targets = [f"/hold?id=n{nr}" for nr in range(6)]
        wires = asked(server, stack, *targets)
        in_the_application(server, 6)
        targets.append(f"/crashes?signal={number}")
        wires += asked(server, stack, targets[-1])
        server.log.wait(rf"Worker \(pid:{worker}\) was sent SIGSEGV!")
        for wire in wires:
            assert wire.ended() == b""
        named = re.compile(rf"{worker}.*GET /")
        until(lambda: server.log.matching(named.pattern), "it is told what it was running")
        for target in targets:
            (line, *_) = server.log.wait(rf"GET {re.escape(target)}\b")
            assert str(worker) in line.string
            assert re.search(r"\d+\.\d s", line.string), line.string
        until(lambda: server.worker_pids(), "it is replaced")
        assert until(lambda: pid(server), "it serves") != worker


# Hooks, and what is counted.


HOOKS = """
import time

def pre_request(worker, req):
    req.began = time.monotonic()
    time.sleep(0.05)
    worker.log.info("pre %s", req.query)

def post_request(worker, req, environ, resp):
    time.sleep(0.05)
    worker.log.info("post %s %s %s", req.query, environ["QUERY_STRING"], resp.status)

def worker_int(worker):
    time.sleep(0.1)
    worker.log.info("interrupted at leisure")

def worker_exit(server, worker):
    time.sleep(0.1)
    worker.log.info("exiting after %d", worker.nr)
"""


@GREEN_CLASSES
def test_hooks_may_wait_and_belong_to_their_request(worker_class: str) -> None:
    count = 40
    with Site(f"worker_class = {worker_class!r}\n{HOOKS}") as server, ExitStack() as stack:
        assert statuses(asked(server, stack, *(f"/sleep?s=0.1&n={nr}" for nr in range(count)))) == [200] * count
        for nr in range(count):
            mine = rf"s=0\.1&n={nr}"
            server.log.wait(rf"pre {mine}$")
            server.log.wait(rf"post {mine} {mine} 200 OK$")
        under_way = itertools.accumulate(
            1 if "pre" in found[0] else -1 for found in server.log.matching(r"\b(pre|post) s=")
        )
        assert max(under_way) >= count / 2, "not one after the other"
        server.signal(signal.SIGINT)
        assert server.wait_exit() == 0
        assert server.log.matching("interrupted at leisure")
        assert server.log.matching(f"exiting after {count}")


@SIDE_BY_SIDE
def test_the_scoreboard_counts_those_that_wait(tmp_path: Path, worker_class: str) -> None:
    config = f"worker_class = {worker_class!r}\n{MEET}"
    ledger, gate = tmp_path / "ledger", tmp_path / "gate"
    with Site(config, app="counted:application", env={"LEDGER": str(ledger)}) as server, ExitStack() as stack:
        stack.callback(gate.touch)

        def counts() -> dict[str, int]:
            (told,) = server.get("/board").json()["workers"].values()
            return dict(told)

        before = counts()
        wires = asked(server, stack, *(f"/?id=n{nr}&gate={gate}" for nr in range(30)))
        until(lambda: len(calls(ledger)) == 30, "they are in the application")
        now = counts()
        assert (before["in_flight"], now["in_flight"]) == (1, 31)
        assert now["queued"] == 0
        assert now["free"] > 0
        gate.touch()
        assert statuses(wires) == [200] * 30
        until(lambda: counts()["in_flight"] == 1, "they have left")
        assert counts()["requests"] >= now["requests"] + 30 - 1


# Beside siblings.


@GEVENT
def test_requests_do_not_wait_behind_a_hub_that_is_blocked(worker_class: str) -> None:
    """One of two workers is held for seconds by one request; what comes by its connections is answered by the other."""
    with green(worker_class, workers=2, keep_alive=30) as server, ExitStack() as stack:
        wires: dict[int, list[Wire]] = {worker: [] for worker in server.worker_pids()}
        while min(map(len, wires.values())) < 6:
            some = asked(server, stack, *["/sleeps?s=0.02"] * 2)
            assert statuses(some) == [200] * 2
            for wire in some:
                wires[int(wire.get("/pid").body)].append(wire)
        blocked, idle = wires
        blocker, *others = wires[blocked]
        blocker.send(request("GET", "/blocks?s=3"))
        assert blocker.still_open(0.2)
        for wire in others:
            assert int(wire.get("/pid").body) == idle
        assert blocker.still_open()
        assert not blocker.unread, "it is held all the while"
        assert blocker.reply().status == 200
