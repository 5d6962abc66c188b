"""Measures the memory of the arbiter, the molds and the workers for metrics: of one process at a time.

A look may take long, since the kernel walks the page tables of the process. So there is a pause after each, and none of
a worker that is stuck: the lock of its address space may be held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tricorn import process_memory
from tricorn.arbiter.parts import Parts
from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.policy.events import Event
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.worker_handle import NO_PID
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.process_memory import ProcessMemory
from tricorn.unpatched import os, time

PAUSE = 2.0
"""Seconds between two looks."""
FIRST = 0.1
"""The same as long as there is a process that was not looked at."""
COST = 50
"""A look that takes long is followed by a pause of so many times its duration."""
ARBITER = 0
"""Its number; those of workers and molds begin with 1."""

NONE = ProcessMemory(0, 0, 0, 0)


class MemoryWatch(Periodic):
    failure = "The memory of a process cannot be measured"

    def __init__(self, parts: Parts, now: float) -> None:
        self._parts = parts
        self._next = now + PAUSE  # by then there are others with which this process shares memory
        self._seen: dict[int, ProcessMemory] = {}
        """Memory by number, measured the longest ago first; `NONE`: it may not be read."""
        self._is_told = True
        """The kernel tells it at all."""

    def due(self, state: State, now: float) -> float:
        generation = self._parts.generation
        has_metrics = bool(generation.admin and generation.config.metrics_path)
        is_wanted = has_metrics or generation.config.statsd_extended
        return self._next if is_wanted and self._is_told else NEVER

    def run(self, state: State, now: float) -> Iterable[Event]:
        self._next = now + PAUSE
        began = time.monotonic()
        pids = self._pids(state)
        self._seen = {nr: memory for nr, memory in self._seen.items() if nr in pids}
        new = [nr for nr in pids if nr not in self._seen]
        self._look(next(iter(new or self._seen)), pids)
        pause = FIRST if len(new) > 1 else PAUSE
        self._next = now + max(pause, COST * (time.monotonic() - began))
        return ()

    def _pids(self, state: State) -> Mapping[int, int]:
        """Returns the processes that may be looked at, by number."""
        processes = self._parts.processes
        found = {ARBITER: os.getpid()}
        found.update((nr, mold.pid) for nr, mold in processes.molds.items() if mold.pid != NO_PID)
        for nr, handle in processes.handles.items():
            worker = state.workers.get(nr)
            is_calm = worker is not None and worker.served_since is not None and not (worker.stuck or worker.silent)
            if is_calm and handle.pid != NO_PID:
                found[nr] = handle.pid
        return found

    def _look(self, nr: int, pids: Mapping[int, int]) -> None:
        self._seen.pop(nr, None)
        self._seen[nr] = memory = _read(pids[nr])
        if nr == ARBITER and memory is NONE:
            self._is_told = False
        self._publish(nr, memory)
        config = self._parts.generation.config
        if config.statsd_extended:
            size = sum(each.pss for each in self._seen.values())
            extra = {"metric": "gunicorn.memory.pss", "value": size, "mtype": "gauge"}
            self._parts.generation.log.debug("%d bytes of memory (PSS)", size, extra=extra)

    def _publish(self, nr: int, memory: ProcessMemory) -> None:
        processes = self._parts.processes
        if nr == ARBITER:
            processes.ledger.set_arbiter_memory(*_words(memory))
        elif nr in processes.handles:
            handle = processes.handles[nr]
            Scoreboard(handle.pages.page(handle.page)).set_memory(*_words(memory))
        molds = [_words(seen) for each, seen in self._seen.items() if each in processes.molds]
        processes.ledger.set_mold_memory(*map(sum, zip(_words(NONE), *molds, strict=True)))


def _read(pid: int) -> ProcessMemory:
    try:
        return process_memory.read(pid) or NONE
    except OSError:
        return NONE


def _words(memory: ProcessMemory) -> tuple[int, int, int]:
    return memory.pss, memory.uss, memory.shared
