"""Looks at what workers do not say: their memory, their pages, and whether the server we came from still lives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tricorn.arbiter import memory
from tricorn.arbiter.policy.events import Event, WorkerSeen
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.policy.worker import Worker
from tricorn.arbiter.systemd import Watchdog
from tricorn.unpatched import time

if TYPE_CHECKING:
    from tricorn.arbiter.effects import Effects

SECOND = 1_000_000_000

STUCK = 0.1
"""Seconds between looks while a stuck worker is being replaced."""

SILENT = 0.25
"""Seconds between looks at a worker whose silence is doubted."""

MEMORY = 2.0
"""Seconds between looks at the memory of workers."""

PARENT = 1.0
"""Seconds between looks at the server that this one replaces."""


class Watcher:
    def __init__(self, effects: Effects, now: float) -> None:
        self._effects = effects
        self._last = now
        self._watchdog = Watchdog(effects.notifier, now)

    def next_look(self, state: State) -> float:
        """When to look again; NEVER if there is nothing to see."""
        return min(self._last + self._pause(state), self._watchdog.deadline)

    def look(self, state: State, now: float) -> Iterator[Event]:
        """What there is to tell."""
        self._watchdog.ping(now)
        if now < self._last + self._pause(state):
            return
        self._last = now
        self._effects.upgrade.watch_parent()
        if state.is_watched():
            for worker in state.workers.values():
                if worker.served_since is not None:
                    seen = self._see(worker, state)
                    if seen is not None:
                        yield seen

    def _pause(self, state: State) -> float:
        pauses = [NEVER]
        if self._effects.upgrade.parent is not None:
            pauses.append(PARENT)
        if state.has_stuck():
            pauses.append(STUCK)
        if state.has_silent():
            pauses.append(SILENT)
        if state.policy.max_memory > 0:
            pauses.append(MEMORY)
        if state.policy.timeout > 0:
            pauses.append(min(max(state.policy.timeout / 2, 1.0), 10.0))
        return min(pauses)

    def _see(self, worker: Worker, state: State) -> WorkerSeen | None:
        handle = self._effects.processes.handles.get(worker.nr)
        if handle is None:
            return None
        snapshot = handle.snapshot()
        if snapshot is None:
            return None
        rss = memory.rss(handle.pid) if state.policy.max_memory > 0 else None
        figures = snapshot.figures
        in_flight, queued = figures["in_flight"], figures["queued"]
        silence = (time.monotonic_ns() - snapshot.heartbeat) / SECOND if in_flight else 0.0
        return WorkerSeen(worker.nr, rss, in_flight, queued, silence, snapshot.heartbeat)
