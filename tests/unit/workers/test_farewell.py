"""WebSockets of a worker that leaves are told one after another, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
from tricorn.workers.farewell import TICK, Farewell, told_by


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


def farewell(loop: Loop, count: int, told: Told) -> Farewell:
    return Farewell(loop, count, told)  # type: ignore[arg-type]  # all that is asked of a loop


@pytest.mark.parametrize("count", [1, 2, 7, 300, 10_000])
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
    assert not [timer for timer in loop.timers if timer.callback]


def test_no_second_has_more_than_its_share() -> None:
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
    leaving = farewell(loop, 100, told)
    leaving.begin(10.0)
    loop.run(1005.05)
    assert len(told.times) == 51
    leaving.hurry()
    assert told.times[51:] == [pytest.approx(5.05)] * 49
    loop.run(1020.0)
    leaving.hurry()
    assert len(told.times) == 100


def test_none_is_told_when_the_worker_has_ended() -> None:
    loop = Loop()
    told = Told(loop)
    leaving = farewell(loop, 100, told)
    leaving.begin(10.0)
    leaving.cancel()
    loop.run(1020.0)
    assert len(told.times) == 1


def test_at_once_and_none_at_all() -> None:
    loop = Loop()
    told = Told(loop)
    farewell(loop, 5, told).begin(0.0)
    farewell(loop, 0, told).begin(10.0)
    assert told.times == [0.0] * 5
    assert not loop.timers


def test_a_real_loop_runs_it() -> None:
    async def leave() -> list[int]:
        told: list[int] = []
        done = asyncio.Event()

        def tell(most: int) -> None:
            told.append(most)
            if sum(told) == 5:
                done.set()

        Farewell(asyncio.get_running_loop(), 5, tell).begin(0.2)
        await done.wait()
        return told

    assert len(asyncio.run(asyncio.wait_for(leave(), 30))) > 1


def test_how_many_are_told_by_then() -> None:
    assert [told_by(4, elapsed, 10.0) for elapsed in (0.0, 2.4, 2.5, 7.5, 9.9, 10.0, 99.0)] == [1, 1, 2, 4, 4, 4, 4]
    assert told_by(0, 0.0, 10.0) == 0
    assert told_by(4, 0.0, 0.0) == 4
