"""Whose memory the arbiter measures, and when."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn import _core, process_memory
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.periodic import memory_watch
from tricorn.arbiter.periodic.memory_watch import COST, FIRST, PAUSE, MemoryWatch
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.policy.worker import Booting, Retiring, Serving, Silent, Worker
from tricorn.process_memory import ProcessMemory
from tricorn.record import replace

from tests.unit.arbiter.policy.support import QUIET

ME = os.getpid()


class Kernel:
    """Tells sizes by pid, and notes who was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.forbidden: set[int] = set()
        self.now = 0.0
        self.takes = 0.0

    def read(self, pid: int) -> ProcessMemory | None:
        self.asked.append(pid)
        self.now += self.takes
        if pid in self.forbidden:
            raise PermissionError
        return ProcessMemory(pid, pid + 1, pid + 2, pid + 3)

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(process_memory, "read", made.read)
    monkeypatch.setattr(memory_watch, "time", made)
    return made


class Ledger:
    def __init__(self) -> None:
        self.arbiter: tuple[int, ...] = ()
        self.molds: tuple[int, ...] = ()

    def set_arbiter_memory(self, *sizes: int) -> None:
        self.arbiter = sizes

    def set_mold_memory(self, *sizes: int) -> None:
        self.molds = sizes


class Server:
    """Workers 2 and 3 of mold 1, by default."""

    def __init__(self, *, admin: bool = True, path: str = "/metrics", statsd: bool = False) -> None:
        self.pages = Pages.roomy(_core.scoreboard_bytes(1), 8)
        self.ledger, self.sent = Ledger(), list[dict[str, Any]]()
        self.handles = {nr: SimpleNamespace(pid=100 + nr, pages=self.pages, page=nr) for nr in (2, 3)}
        self.molds = {1: SimpleNamespace(pid=101)}
        config = SimpleNamespace(metrics_path=path, statsd_extended=statsd)
        log = SimpleNamespace(debug=lambda text, *_, extra: self.sent.append(extra))
        self.parts: Any = SimpleNamespace(
            generation=SimpleNamespace(admin=["a listener"] if admin else [], config=config, log=log),
            processes=SimpleNamespace(ledger=self.ledger, handles=self.handles, molds=self.molds),
        )
        self.state = State(2, QUIET)
        for nr in (2, 3):
            self.state = self.state.with_worker(Worker(nr, 1, started=0.0, phase=Serving(1.0), pid=100 + nr))

    def words(self, nr: int) -> list[int]:
        return list(self.pages.page(nr).cast("Q")[473:476])

    def put(self, nr: int, **changed: Any) -> None:
        self.state = self.state.with_worker(replace(self.state.workers[nr], **changed))


def run(watch: MemoryWatch, server: Server, times: int = 1) -> None:
    for _ in range(times):
        list(watch.run(server.state, 0.0))


def test_one_process_at_a_time_and_the_one_that_was_measured_longest_ago(kernel: Kernel) -> None:
    server = Server()
    watch = MemoryWatch(server.parts, 0.0)
    run(watch, server, 9)
    assert kernel.asked == [ME, 101, 102, 103, ME, 101, 102, 103, ME]
    assert server.ledger.arbiter == (ME, ME + 1, ME + 2)
    assert server.ledger.molds == (101, 102, 103)
    assert (server.words(2), server.words(3)) == ([102, 103, 104], [103, 104, 105])


def test_one_that_is_new_is_the_next(kernel: Kernel) -> None:
    server = Server()
    watch = MemoryWatch(server.parts, 0.0)
    run(watch, server, 4)
    server.handles[4] = SimpleNamespace(pid=104, pages=server.pages, page=4)
    server.state = server.state.with_worker(Worker(4, 1, started=0.0, phase=Serving(1.0), pid=104))
    run(watch, server)
    assert kernel.asked[-1] == 104


def test_molds_are_summed_up_and_one_that_is_gone_is_not_told(kernel: Kernel) -> None:
    server = Server()
    watch = MemoryWatch(server.parts, 0.0)
    server.molds[5] = SimpleNamespace(pid=105)
    run(watch, server, 5)
    assert server.ledger.molds == (206, 208, 210)
    del server.molds[1]
    run(watch, server)
    assert server.ledger.molds == (105, 106, 107)
    server.molds.clear()
    run(watch, server)
    assert server.ledger.molds == (0, 0, 0)


def test_a_worker_that_boots_or_is_stuck_or_silent_is_not_looked_at(kernel: Kernel) -> None:
    server = Server()
    server.molds.clear()
    watch = MemoryWatch(server.parts, 0.0)
    for phase in (Booting(), Retiring(1.0, "stuck", stuck=1), Serving(1.0, silent=Silent(1, 1.0))):
        server.put(3, phase=phase)
        run(watch, server, 3)
        assert 103 not in kernel.asked, phase
    server.put(3, phase=Serving(1.0))
    run(watch, server)
    assert kernel.asked[-1] == 103


def test_pauses_are_short_at_first_and_long_after_a_look_that_took_long(kernel: Kernel) -> None:
    server = Server()
    watch = MemoryWatch(server.parts, 7.0)
    assert watch.due(server.state, 7.0) == 7.0 + PAUSE
    pauses = []
    for _ in range(5):
        list(watch.run(server.state, 10.0))
        pauses.append(watch.due(server.state, 10.0) - 10.0)
    assert pauses == pytest.approx([FIRST, FIRST, FIRST, PAUSE, PAUSE])
    kernel.takes = 0.5
    list(watch.run(server.state, 10.0))
    assert watch.due(server.state, 10.0) - 10.0 == pytest.approx(0.5 * COST)


def test_it_measures_for_metrics_and_for_statsd_only(kernel: Kernel) -> None:
    for given, wanted in (
        ({}, True),
        ({"admin": False}, False),
        ({"path": ""}, False),
        ({"admin": False, "statsd": True}, True),
    ):
        server = Server(**given)
        due = MemoryWatch(server.parts, 1.0).due(server.state, 1.0)
        assert due == (1.0 + PAUSE if wanted else NEVER), given


def test_statsd_is_sent_the_sum(kernel: Kernel) -> None:
    server = Server(statsd=True)
    run(MemoryWatch(server.parts, 0.0), server, 4)
    assert [each["value"] for each in server.sent] == [ME, ME + 101, ME + 203, ME + 306]
    assert {(each["metric"], each["mtype"]) for each in server.sent} == {("gunicorn.memory.pss", "gauge")}


def test_a_worker_that_may_not_be_read_has_no_size(kernel: Kernel) -> None:
    server = Server()
    watch = MemoryWatch(server.parts, 0.0)
    run(watch, server, 4)
    kernel.forbidden.add(103)
    run(watch, server, 4)
    assert (server.words(2), server.words(3)) == ([102, 103, 104], [0, 0, 0])
    assert watch.due(server.state, 0.0) < NEVER


def test_where_the_kernel_does_not_tell_it_is_not_asked_again(kernel: Kernel) -> None:
    server = Server()
    kernel.forbidden.add(ME)
    watch = MemoryWatch(server.parts, 0.0)
    run(watch, server)
    assert watch.due(server.state, 0.0) == NEVER
    assert server.ledger.arbiter == (0, 0, 0)
