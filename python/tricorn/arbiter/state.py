"""What the arbiter knows. Immutable; `decide` makes the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from signal import Signals
from types import MappingProxyType

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Leaving:
    """A worker was told to go with `told`; if it is still there at `deadline` it is told more clearly."""

    told: Signals
    deadline: float


@dataclass(frozen=True, slots=True)
class Worker:
    nr: int
    generation: int
    started: float
    pid: int | None = None
    ready: float | None = None
    """When it said that it serves; None while it boots."""
    failure: str | None = None
    """Why it cannot boot, in its own words."""
    leaving: Leaving | None = None

    def __str__(self) -> str:
        return f"Worker (pid:{self.pid})"


@dataclass(frozen=True, slots=True)
class Backoff:
    """Restraint in replacing workers that die young."""

    streak: int = 0
    last: float = -NEVER
    until: float = -NEVER
    """No worker is started before."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a worker of the first start did not boot."""

    code: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Stopping:
    code: int
    failure: str | None
    """The reason, when nobody asked for the stop."""
    quick: bool


@dataclass(frozen=True, slots=True)
class State:
    target: int
    """Workers wanted."""
    most: int
    """Workers there can be: the scoreboard has no more pages."""
    graceful_timeout: float
    workers: Mapping[int, Worker] = field(default_factory=lambda: MappingProxyType({}))
    generation: int = 1
    next_nr: int = 1
    proven: bool = False
    """Some worker has been ready: the application can boot, and one that fails is worth another try."""
    failures: tuple[Failure, ...] = ()
    """The workers that failed before any was ready."""
    backoff: Backoff = Backoff()
    stopping: Stopping | None = None

    def with_worker(self, worker: Worker) -> State:
        return replace(self, workers=MappingProxyType({**self.workers, worker.nr: worker}))

    def without(self, nr: int) -> State:
        return replace(self, workers=MappingProxyType({k: w for k, w in self.workers.items() if k != nr}))

    def staying(self) -> list[Worker]:
        """The workers that were not told to leave, oldest first."""
        return [worker for worker in self.workers.values() if worker.leaving is None]

    def missing(self) -> int:
        """How many workers to start; until the first is ready, failed ones are not tried again."""
        if self.stopping is not None:
            return 0
        return self.target - len(self.staying()) - (0 if self.proven else len(self.failures))

    def deadlines(self) -> Iterator[float]:
        """When a Tick is due."""
        for worker in self.workers.values():
            if worker.leaving is not None:
                yield worker.leaving.deadline
        if self.missing() > 0:
            yield self.backoff.until

    def next_deadline(self) -> float:
        return min(self.deadlines(), default=NEVER)
