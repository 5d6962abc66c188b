"""When the arbiter finds that no request comes any more, during the delay before it leaves."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.periodic.drain_watch import PAUSE, DrainWatch
from tricorn.arbiter.policy.events import Quiet
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.record import replace

from tests.harness.deadline import until
from tests.unit.arbiter.policy.support import quiet as settings


class Worker:
    def __init__(self) -> None:
        self.figures = {"accepted": 10, "requests": 20, "in_flight": 1, "queued": 0}

    def snapshot(self) -> Any:
        return SimpleNamespace(figures=self.figures)


@pytest.fixture
def worker() -> Worker:
    return Worker()


def around(*workers: Worker, listeners: tuple[socket.socket, ...] = (), kind: str = "sync") -> Any:
    """The parts of an arbiter that are asked."""
    found = [SimpleNamespace(socket=listener) for listener in listeners]
    handles = dict(enumerate(workers)) | {99: SimpleNamespace(snapshot=lambda: None)}
    generation = SimpleNamespace(listeners=found, worker_class=SimpleNamespace(alias=kind))
    return SimpleNamespace(processes=SimpleNamespace(handles=handles), generation=generation)


def draining(quiet: float = 3.0, delay: float = 60.0) -> State:
    return State(2, settings(drain_delay=delay, drain_quiet=quiet), drain_at=1000.0 + delay)


def looks(watch: DrainWatch, state: State, start: float, end: float) -> list[float]:
    """Looks whenever it is due; when it told that all is quiet."""
    told, now = [], start
    while (now := max(now, watch.due(state, now))) <= end:
        told += [now for event in watch.run(state, now) if event == Quiet(state.policy.drain_quiet)]
    return told


def test_it_is_told_when_nothing_has_come_for_so_long(worker: Worker) -> None:
    watch = DrainWatch(around(worker, Worker()))
    assert looks(watch, draining(), 1000.0, 1003.1) == [1003.0]


@pytest.mark.parametrize("what", ["accepted", "requests", "in_flight", "queued"])
def test_what_comes_is_seen_wherever_it_is_counted(worker: Worker, what: str) -> None:
    watch, state = DrainWatch(around(worker, Worker())), draining()
    assert looks(watch, state, 1000.0, 1002.0) == []
    worker.figures[what] += 1
    assert looks(watch, state, 1002.0, 1005.3) == [pytest.approx(1005.0, abs=PAUSE)]


def test_a_call_that_ends_is_no_request_that_comes(worker: Worker) -> None:
    watch, state = DrainWatch(around(worker)), draining()
    assert looks(watch, state, 1000.0, 1002.0) == []
    worker.figures["in_flight"] -= 1
    worker.figures["requests"] += 1
    assert looks(watch, state, 1002.0, 1003.1) == [1003.0]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_a_connection_that_waits_is_one(worker: Worker, family: int, tmp_path: Any) -> None:
    with socket.socket(family) as listener, socket.socket(family) as client:
        listener.bind(("127.0.0.1", 0) if family == socket.AF_INET else f"{tmp_path}/socket")
        listener.listen(5)
        watch, state = DrainWatch(around(worker, listeners=(listener,))), draining()
        assert looks(watch, state, 1000.0, 1002.0) == []
        client.connect(listener.getsockname())
        parts = around(worker, listeners=(listener,))
        until(lambda: not looks(DrainWatch(parts), state, 1000.0, 1009.0), "it waits in the queue")
        assert looks(watch, state, 1002.0, 1030.0) == []
        listener.accept()[0].close()
        assert looks(watch, state, 1030.0, 1033.2) == [pytest.approx(1033.0, abs=PAUSE)]


def test_a_reserved_port_is_no_queue(worker: Worker) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert looks(DrainWatch(around(worker, listeners=(bound,))), draining(), 1000.0, 1003.1) == [1003.0]


def test_it_looks_at_nothing_where_silence_ends_nothing(worker: Worker) -> None:
    watch = DrainWatch(around(worker))
    serving = replace(draining(), drain_at=None)
    for state in (serving, draining(quiet=0.0)):
        assert watch.due(state, 5000.0) == NEVER


def test_a_class_without_a_core_counts_nothing_and_is_not_believed_to_be_silent(worker: Worker) -> None:
    watch = DrainWatch(around(worker, kind="hosted"))
    assert watch.due(draining(), 0.0) == NEVER
    assert looks(watch, draining(), 1000.0, 1050.0) == []
