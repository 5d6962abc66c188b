"""Watches what workers do not say: their memory, their pages; and whether the server that we replace still lives."""

from __future__ import annotations

from collections.abc import Iterator

from tricorn import process_memory
from tricorn.arbiter.parts import Parts
from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.policy.events import Event, Weighed, WorkerSeen
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.policy.worker import Worker
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.unpatched import os, time
from tricorn.workers import registry

SECOND = 1_000_000_000

STUCK = 0.1
"""Seconds between looks while a stuck worker is being replaced."""

SILENT = 0.25
"""Seconds between looks at a worker whose silence is doubted."""

MEMORY = 2.0
"""Seconds between looks at the memory of workers."""

REFORK = 1.0
"""Seconds between looks at how much workers have served."""

PARENT = 1.0
"""Seconds between looks at the server that this one replaces."""


class WorkerWatch(Periodic):
    failure = "The pages of workers cannot be read"

    def __init__(self, parts: Parts, now: float) -> None:
        self._parts = parts
        self._last = now

    def due(self, state: State, now: float) -> float:
        return self._last + self._pause(state)

    def run(self, state: State, now: float) -> Iterator[Event]:
        self._last = now
        self._parts.upgrade.watch_parent()
        if state.is_watched():
            for worker in state.workers.values():
                if worker.served_since is not None:
                    seen = self._see(worker, state)
                    if seen is not None:
                        yield seen
        if state.refork.weighs:
            yield self._weigh(state)

    def _pause(self, state: State) -> float:
        pauses = [NEVER]
        if self._parts.upgrade.parent is not None:
            pauses.append(PARENT)
        if state.has_stuck():
            pauses.append(STUCK)
        if state.has_silent():
            pauses.append(SILENT)
        if state.policy.max_worker_memory > 0:
            pauses.append(MEMORY)
        if state.policy.refork:
            pauses.append(REFORK)
        if state.policy.timeout > 0:
            pauses.append(min(max(state.policy.timeout / 2, 1.0), 10.0))
        return min(pauses)

    def _see(self, worker: Worker, state: State) -> WorkerSeen | None:
        handle = self._parts.processes.handles.get(worker.nr)
        if handle is None:
            return None
        snapshot = handle.snapshot()
        if snapshot is None:
            return None
        memory = rss(handle.pid) if state.policy.max_worker_memory > 0 else None
        figures = snapshot.figures
        in_flight, queued = figures["in_flight"], figures["queued"]
        silence = (time.monotonic_ns() - snapshot.heartbeat) / SECOND if in_flight else 0.0
        is_refork = bool(state.policy.refork) and handle.kind in registry.REFORKED
        served = Scoreboard(handle.pages.page(handle.page)).begun if is_refork else 0
        return WorkerSeen(worker.nr, memory, in_flight, queued, silence, snapshot.heartbeat, served)

    def _weigh(self, state: State) -> Weighed:
        """Measures the memory of the workers of the generation that serve, and of its mold."""
        workers = [worker for worker in state.of(state.generation) if worker.served_since is not None]
        mold = state.mold_of(state.generation)
        pids = [each.pid for each in (*workers, mold) if each is not None and each.pid is not None]
        try:
            found = [process_memory.read(pid) for pid in pids]
        except OSError:  # the kernel does not tell
            found = []
        is_known = bool(workers and found)
        return Weighed(state.generation, sum(each.pss for each in found if each) // len(workers) if is_known else None)


def rss(pid: int) -> int | None:
    """Returns the resident set in bytes, pages shared with other processes included; None when it is not known."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as stream:
            fields = stream.read().split()
    except OSError:
        return None
    # size, resident, shared … in pages. A zombie has none of them, which is no measurement.
    pages = int(fields[1]) if len(fields) > 1 else 0
    return pages * _PAGE_SIZE or None


_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
