"""How clients that would stay are sent to other workers, WebSockets and event streams: one by one, the oldest first.

    begin ──▶ dismiss(1) ── a while ──▶ dismiss(1) ── … ──▶ all are told
      │                         └── hurry ──▶ all the rest at once
      └── enforce, twenty times a second ──▶ those end that were told and go on

A client that is told connects anew. Ten thousand that do so in the same second are an attack on the other workers and
servers; a hundred are not, so that a worker that has few of them leaves at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tricorn.workers.leaving import RATE


class Farewell:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        count: int,
        dismiss: Callable[[int], object],
        enforce: Callable[[], object],
    ) -> None:
        """`dismiss` tells so many of the `count` that there are, the oldest first.

        `enforce` ends those that were told and do not go. It is called until `cancel`.
        """
        self._loop = loop
        self._count = count
        self._dismiss = dismiss
        self._enforce = enforce
        self._told = 0
        self._began = 0.0
        self._seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._patrol: asyncio.TimerHandle | None = None

    def begin(self, seconds: float, lead: float = 0.0) -> None:
        """Tells all of them when `lead` is over, spread over so many seconds at most."""
        self._began, self._seconds = self._loop.time() + lead, min(seconds, self._count / RATE)
        self._go_on()
        self._patrol = self._loop.call_later(PATROL, self._look_around)

    def hurry(self) -> None:
        """Tells the rest at once."""
        self._began, self._seconds = self._loop.time(), 0.0
        self._go_on()

    def cancel(self) -> None:
        """None is left to be told: the worker has ended."""
        for timer in (self._timer, self._patrol):
            if timer is not None:
                timer.cancel()
        self._timer = self._patrol = None

    def _go_on(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = told_by(self._count, self._loop.time() - self._began, self._seconds)
        if due > self._told:
            told, self._told = self._told, due
            self._dismiss(due - told)
        if self._told < self._count:
            next_one = self._began + self._seconds * self._told / self._count
            self._timer = self._loop.call_at(max(next_one, self._loop.time() + TICK), self._go_on)

    def _look_around(self) -> None:
        self._enforce()
        self._patrol = self._loop.call_later(PATROL, self._look_around)


def told_by(count: int, elapsed: float, seconds: float) -> int:
    """How many of `count` are told by then: the first at once, and the last one interval before the end."""
    if elapsed < 0:
        return 0
    if elapsed >= seconds:
        return count
    return min(count, int(count * elapsed / seconds) + 1)


TICK = 0.02
"""Seconds between turns at least: of thousands several are told in one."""

PATROL = 0.05
"""Seconds between looks at those that were told."""
