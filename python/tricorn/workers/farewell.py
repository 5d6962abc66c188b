"""How the WebSockets of a worker that leaves are told so: spread evenly over some seconds, the oldest first.

    begin ──▶ dismiss(1) ── a while ──▶ dismiss(1) ── … ──▶ all are told
                                └── hurry ──▶ all the rest at once

A client that is told connects anew. Ten thousand that do so in the same second are an attack on the other servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Farewell:
    def __init__(self, loop: asyncio.AbstractEventLoop, count: int, dismiss: Callable[[int], object]) -> None:
        """`dismiss` tells so many of the `count` that there are, the oldest first."""
        self._loop = loop
        self._count = count
        self._dismiss = dismiss
        self._told = 0
        self._began = 0.0
        self._seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, seconds: float) -> None:
        """Tells all of them, spread over so many seconds."""
        self._began, self._seconds = self._loop.time(), seconds
        self._go_on()

    def hurry(self) -> None:
        """Tells the rest at once."""
        self._seconds = 0.0
        self._go_on()

    def cancel(self) -> None:
        """None is left to be told: the worker has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        self.cancel()
        due = told_by(self._count, self._loop.time() - self._began, self._seconds)
        if due > self._told:
            told, self._told = self._told, due
            self._dismiss(due - told)
        if self._told < self._count:
            next_one = self._began + self._seconds * self._told / self._count
            self._timer = self._loop.call_at(max(next_one, self._loop.time() + TICK), self._go_on)


def told_by(count: int, elapsed: float, seconds: float) -> int:
    """How many of `count` are told by then: the first at once, and the last one interval before the end."""
    if elapsed >= seconds:
        return count
    return min(count, int(count * elapsed / seconds) + 1)


TICK = 0.02
"""Seconds between turns at least: of thousands several are told in one."""
