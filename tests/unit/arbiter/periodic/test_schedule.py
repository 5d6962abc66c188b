"""When jobs run, and what becomes of one that fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tricorn.arbiter.periodic import Deadlines, Periodic, Schedule
from tricorn.arbiter.policy.events import Event, Resized, Tick
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.systemd import Notifier, Watchdog
from tricorn.record import replace
from tricorn.unpatched import select

from tests.unit.arbiter.policy.support import QUIET

STATE = State(1, QUIET)


class Job(Periodic):
    def __init__(self, at: float = NEVER, descriptor: int = -1) -> None:
        self.at, self.descriptor = at, descriptor
        self.ran: list[float] = []

    def due(self, state: State, now: float) -> float:
        return self.at

    def run(self, state: State, now: float) -> Iterable[Event]:
        self.ran.append(now)
        self.at = NEVER
        return (Resized(len(self.ran)),)


class Broken(Job):
    failure = "It is broken"

    def run(self, state: State, now: float) -> Iterator[Event]:
        self.at = now + 1
        yield Resized(7)
        raise RuntimeError


class Guard:
    def __init__(self) -> None:
        self.failures: list[str] = []

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError:
            self.failures.append(what)


@pytest.fixture
def guard() -> Any:
    return Guard()


def test_jobs_run_when_they_are_due_and_their_events_are_the_policys(guard: Any) -> None:
    first, second, never = Job(10.0), Job(20.0), Job()
    schedule = Schedule([first, second, never], guard)
    assert schedule.register(select.poll(), STATE, 0.0) == 10.0
    assert list(schedule.run(STATE, 9.9)) == []
    assert list(schedule.run(STATE, 10.0)) == [Resized(1)]
    assert schedule.register(select.poll(), STATE, 10.0) == 20.0
    assert list(schedule.run(STATE, 30.0)) == [Resized(1)]
    assert (first.ran, second.ran, never.ran) == ([10.0], [30.0], [])


def test_a_job_that_fails_is_logged_and_the_others_run(guard: Any) -> None:
    other = Job(0.0)
    schedule = Schedule([Broken(0.0), other], guard)
    assert list(schedule.run(STATE, 5.0)) == [Resized(7), Resized(1)]
    assert guard.failures == ["It is broken"]
    assert schedule.register(select.poll(), STATE, 5.0) == 6.0, "not at once again"


def test_a_job_whose_descriptor_is_readable_runs_though_it_is_not_due(guard: Any) -> None:
    job = Job(NEVER, descriptor=5)
    schedule = Schedule([Job(), job], guard)
    assert list(schedule.run(STATE, 0.0, {4})) == []
    assert list(schedule.run(STATE, 0.0, {4, 5})) == [Resized(1)]


def test_a_deadline_of_the_policy_is_a_tick_and_is_waited_for_in_pieces() -> None:
    job, state = Deadlines(longest=1.0), replace(STATE, drain_at=100.0, target=0)
    assert job.due(state, 50.0) == 51.0
    assert job.due(state, 99.5) == 100.0
    assert job.run(state, 100.0) == (Tick(),)
    assert job.due(replace(state, drain_at=None), 50.0) == NEVER


def test_the_watchdog_is_pinged_as_often_as_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    pings: list[Notifier] = []
    monkeypatch.setattr(Notifier, "alive", lambda notifier: pings.append(notifier))
    watchdog = Watchdog(Notifier("/run/notify", 10.0), 100.0)
    for now in (100.0, 105.0, 110.0, 119.0):
        if now >= watchdog.due(STATE, now):
            watchdog.run(STATE, now)
    assert len(pings) == 2
    assert Watchdog(Notifier("/run/notify", None), 100.0).due(STATE, 100.0) == NEVER
