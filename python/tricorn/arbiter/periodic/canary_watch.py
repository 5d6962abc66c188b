"""Reads what both generations have counted since canaries serve, once a second (`canary`), and asks the hook.

Pages are added up as differences between looks: of a worker that has ended what was seen stays, and one that takes its
place begins with nothing. A page is its worker's, which may have written anything into it: counters that fall, or rise
as no server could, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from tricorn.arbiter import hooks
from tricorn.arbiter.parts import Parts
from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.policy.canary import Look, Plan, Sample
from tricorn.arbiter.policy.events import CanarySeen
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.worker_handle import WorkerHandle
from tricorn.metrics.scoreboard import PageReader, histogram_edges
from tricorn.record import Record, replace

PAUSE = 1.0
"""Seconds between looks."""

MOST = 10_000_000
"""Requests of a worker between two looks; nothing serves more."""
MOST_BYTES = 1 << 40

WARM_TIME = 10.0
WARM_REQUESTS = 50
"""Seconds, and requests of each canary, before times are compared: caches fill, and connections are made."""

REFUSED = ("queue_full", "queue_late", "leaving")
"""Responses with 503 that are the queue's, and not the application's."""


class Reading(Record):
    """Counters of a worker, or of all workers of a generation."""

    figures: tuple[int, ...]
    """Numbers of `FIGURES`."""
    times: tuple[int, ...]
    """The histogram of application time."""

    def since(self, before: Reading) -> Reading | None:
        """Returns the difference. None if it cannot be one."""
        change = Reading(_minus(self.figures, before.figures), _minus(self.times, before.times))
        numbers = (*change.figures, *change.times)
        if min(numbers) < 0 or max(numbers) > MOST_BYTES or change.figures[0] > MOST:
            return None
        return change

    def plus(self, other: Reading) -> Reading:
        return Reading(_plus(self.figures, other.figures), _plus(self.times, other.times))


def _minus(ones: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(one - other for one, other in zip(ones, others, strict=True))


def _plus(ones: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(one + other for one, other in zip(ones, others, strict=True))


FIGURES = ("requests", "errors", "app_errors", "late", "bytes_out", "lent")
"""Counters; `errors` are responses with status 5xx that are not the queue's."""
EDGES = tuple(histogram_edges()[0])
NOTHING = Reading((0,) * len(FIGURES), (0,) * (len(EDGES) - 1))


class Tally:
    """Counts of the workers of a generation, also of those that have ended meanwhile."""

    def __init__(self) -> None:
        self.last: dict[int, Reading] = {}
        """The last reading of each worker, by its number."""
        self.all = NOTHING

    def add(self, nr: int, reading: Reading, *, timed: bool) -> None:
        change = reading.since(self.last.get(nr, NOTHING))
        if change is not None:
            self.last[nr] = reading
            self.all = self.all.plus(change if timed else replace(change, times=NOTHING.times))

    def sample(self, workers: int) -> Sample:
        requests, errors, exceptions, late, bytes_out, lent = self.all.figures
        # Most requests in which the application raises an exception are answered 500: the sum would count them twice.
        failed = min(max(errors, exceptions), requests)
        return Sample(workers, requests, failed, late, bytes_out, lent, self.all.times, EDGES)


class CanaryWatch(Periodic):
    failure = "The pages of canaries cannot be read"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._next = -NEVER
        self._generation: int | None = None
        """The one that is watched."""
        self._old, self._new = Tally(), Tally()
        self._warm_at: float | None = None
        """When times began to be counted."""

    def due(self, state: State, now: float) -> float:
        if state.watch is None or state.watch.since is None:
            return NEVER
        return self._next if self._generation == state.generation else -NEVER

    def run(self, state: State, now: float) -> Iterator[CanarySeen]:
        trial, watch = state.trial, state.watch
        if trial is None or watch is None or watch.since is None:
            return
        self._next = now + PAUSE
        if self._generation != state.generation:
            self._generation = state.generation
            self._begin(state, trial.previous)
            return
        elapsed = now - watch.since
        new = self._take(self._new, state, state.generation)
        old = self._take(self._old, state, trial.previous)
        timed = 0.0 if self._warm_at is None else now - self._warm_at
        if self._warm_at is None and self._is_warm(elapsed, watch.plan, new):
            self._warm_at = now
        look = Look(self._old.sample(len(old)), self._new.sample(len(new)), timed)
        yield CanarySeen(state.generation, look, self._ask(look))

    def _begin(self, state: State, previous: int) -> None:
        """Leaves out what the old workers did before; canaries have done nothing before."""
        self._old, self._new, self._warm_at = Tally(), Tally(), None
        for nr in _serving(state, previous):
            reading = self._read(nr)
            if reading is not None:
                self._old.last[nr] = reading

    def _take(self, tally: Tally, state: State, generation: int) -> list[int]:
        """Adds what the workers of this generation have done. Returns their numbers."""
        nrs = _serving(state, generation)
        for nr in nrs:
            reading = self._read(nr)
            if reading is not None:
                tally.add(nr, reading, timed=self._warm_at is not None)
        return nrs

    def _is_warm(self, elapsed: float, plan: Plan, canaries: list[int]) -> bool:
        if elapsed >= plan.seconds / 2:
            return True
        enough = min(WARM_REQUESTS, plan.requests // 10)
        is_long = elapsed >= min(WARM_TIME, plan.seconds / 5)
        return is_long and all(self._new.last.get(nr, NOTHING).figures[0] >= enough for nr in canaries)

    def _read(self, nr: int) -> Reading | None:
        """None if the worker is gone, or its page is none."""
        handle = self._parts.processes.handles.get(nr)
        return None if handle is None or handle.snapshot() is None else reading_of(handle)

    def _ask(self, look: Look) -> bool | None:
        generation = self._parts.generation
        return hooks.ask(generation.config, generation.log, "canary_judge", self._parts.server, look.old, look.new)


def reading_of(handle: WorkerHandle) -> Reading:
    counts = PageReader(handle.pages.page(handle.page)).counts()
    figures = counts.figures
    figures["errors"] = max(0, counts.statuses[4] - sum(figures[name] for name in REFUSED))
    return Reading(tuple(figures[name] for name in FIGURES), tuple(counts.histograms["application"]))


def _serving(state: State, generation: int) -> list[int]:
    """Lists the workers of a generation that have begun to serve."""
    return [
        worker.nr
        for worker in state.workers.values()
        if worker.generation == generation and worker.served_since is not None
    ]
