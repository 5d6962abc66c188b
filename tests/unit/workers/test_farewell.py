"""Clients of a worker that leaves are told one after another, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
from tricorn.workers.farewell import PATROL, TICK, Farewell, told_by


class Loop:
    """A clock that the test moves, and one timer."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        self.timers.append(Timer(when, callback))
        return self.timers[-1]

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return self.call_at(self.now + seconds, callback)

    def run(self, until: float) -> None:
        while due := [timer for timer in self.timers if timer.callback is not None and timer.when <= until]:
            first = min(due, key=lambda timer: timer.when)
            self.timers.remove(first)
            self.now = max(self.now, first.when)
            assert first.callback is not None
            first.callback()
        self.now = until


class Timer:
    def __init__(self, when: float, callback: Callable[[], object]) -> None:
        self.when = when
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Told:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.times: list[float] = []

    def __call__(self, most: int) -> None:
        assert most > 0
        self.times += [self._loop.now - 1000] * most


def nothing() -> None:
    """Is called for those that were told."""


def farewell(loop: Loop, count: int, told: Told, enforce: Callable[[], object] = nothing) -> Farewell:
    return Farewell(loop, count, told, enforce)  # type: ignore[arg-type]  # all that is asked of a loop


@pytest.mark.parametrize("count", [1_001, 3_000, 10_000])
def test_they_are_spread_evenly(count: int) -> None:
    loop = Loop()
    told = Told(loop)
    farewell(loop, count, told).begin(10.0)
    loop.run(1020.0)
    assert len(told.times) == count
    assert told.times[0] == 0.0, "one alone is not made to wait"
    interval = 10.0 / count
    for number, time in enumerate(told.times):
        assert interval * number - 1e-6 <= time <= interval * number + TICK + 1e-6, number
    assert told.times[-1] < 10.0


@pytest.mark.parametrize("count", [1, 2, 7, 300, 1_000])
def test_few_are_told_at_a_hundred_a_second(count: int) -> None:
    """They are no burst, and no reason for a restart to wait."""
    loop = Loop()
    told = Told(loop)
    farewell(loop, count, told).begin(3600.0)
    loop.run(1020.0)
    assert len(told.times) == count
    for number, time in enumerate(told.times):
        assert number / 100 - 1e-6 <= time <= number / 100 + TICK + 1e-6, number


def test_those_that_were_told_are_looked_after_until_the_end() -> None:
    loop = Loop()
    looks: list[float] = []
    leaving = farewell(loop, 1, Told(loop), lambda: looks.append(loop.now - 1000))
    leaving.begin(10.0)
    loop.run(1030.0)
    assert len(looks) == pytest.approx(30 / PATROL, abs=1)
    leaving.cancel()
    loop.run(1040.0)
    assert looks[-1] <= 30.0


def test_farewell_spreads_websocket_closes_over_seconds() -> None:
    loop = Loop()
    told = Told(loop)
    farewell(loop, 10_000, told).begin(10.0)
    loop.run(1020.0)
    each = [sum(second <= time < second + 1 for time in told.times) for second in range(10)]
    assert max(each) <= 1.05 * 1_000, each
    assert all(later >= sooner for sooner, later in pairwise(told.times))


def test_the_rest_may_be_hurried() -> None:
    loop = Loop()
    told = Told(loop)
    leaving = farewell(loop, 2_000, told)
    leaving.begin(10.0)
    loop.run(1005.05)
    assert 1_005 <= len(told.times) <= 1_011
    told_before = len(told.times)
    leaving.hurry()
    assert told.times[told_before:] == [pytest.approx(5.05)] * (2_000 - told_before)
    loop.run(1020.0)
    leaving.hurry()
    assert len(told.times) == 2_000


def test_none_is_told_when_the_worker_has_ended() -> None:
    loop = Loop()
    told = Told(loop)
    leaving = farewell(loop, 100, told)
    leaving.begin(10.0)
    leaving.cancel()
    loop.run(1020.0)
    assert len(told.times) == 1


def test_farewell_of_none_or_all_at_once() -> None:
    loop = Loop()
    told = Told(loop)
    farewell(loop, 5, told).begin(0.0)
    farewell(loop, 0, told).begin(10.0)
    assert told.times == [0.0] * 5


def test_a_real_loop_runs_it() -> None:
    async def leave() -> list[int]:
        told: list[int] = []
        done = asyncio.Event()

        def tell(most: int) -> None:
            told.append(most)
            if sum(told) == 5:
                done.set()

        Farewell(asyncio.get_running_loop(), 5, tell, nothing).begin(0.2)
        await done.wait()
        return told

    assert len(asyncio.run(asyncio.wait_for(leave(), 30))) > 1


def test_how_many_are_told_by_then() -> None:
    assert [told_by(4, elapsed, 10.0) for elapsed in (0.0, 2.4, 2.5, 7.5, 9.9, 10.0, 99.0)] == [1, 1, 2, 4, 4, 4, 4]
    assert told_by(0, 0.0, 10.0) == 0
    assert told_by(4, 0.0, 0.0) == 4


def test_who_has_asked_for_the_notice_has_a_moment_before_the_first_is_told() -> None:
    loop = Loop()
    told = Told(loop)
    leaving = farewell(loop, 50, told)
    leaving.begin(10.0, lead=1.0)
    loop.run(1000.9)
    assert told.times == []
    loop.run(1020.0)
    assert told.times[0] == pytest.approx(1.0, abs=TICK)
    assert len(told.times) == 50
    second = farewell(loop, 5, hurried := Told(loop))
    second.begin(10.0, lead=1.0)
    second.hurry()
    assert len(hurried.times) == 5
