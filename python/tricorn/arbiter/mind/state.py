"""What the arbiter knows. Immutable; `decide` makes the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from signal import Signals
from types import MappingProxyType

from tricorn.arbiter.mind.commands import Command

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that decide what comes next; times in seconds, 0 is off. Each load has its own."""

    graceful_timeout: float = 30
    timeout: float = 0
    boot_timeout: float = 0
    drain_delay: float = 0
    max_memory: int = 0
    """Bytes."""
    max_lifetime: float = 0
    lifetime_jitter: float = 0
    stand_in: bool = False
    """With `reload`: an application that cannot be loaded is answered for with its traceback."""
    daemon: bool = False
    reuse_port: bool = False
    """Each worker has listeners of its own."""
    most: int = 64
    """Workers there can be: the scoreboard has no more pages."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """A worker was told to go with `told`; if it is still there at `deadline` it is told more clearly."""

    told: Signals
    deadline: float


@dataclass(frozen=True, slots=True)
class Silent:
    """A worker seems not to run. Perhaps it was stopped together with the arbiter, and is about to go on."""

    heartbeat: int
    """The last one; with another it runs."""
    since: float
    """When the arbiter first saw that, in its own time."""


@dataclass(frozen=True, slots=True)
class Worker:
    nr: int
    generation: int
    started: float
    pid: int | None = None
    luck: float = 0.0
    ready: float | None = None
    """When it said that it serves; None while it boots."""
    failure: str | None = None
    """Why it cannot boot."""
    overdue: float | None = None
    """Booting took too long: it was asked where it is, and is killed at this time."""
    stack: tuple[str, ...] = ()
    """What it answered."""
    wish: str | None = None
    """Why it should be replaced, when its turn comes."""
    retiring: str | None = None
    """Why it is being replaced: it serves on until its successor does."""
    stuck: int = 0
    """Requests that hold a thread of it for longer than `timeout`."""
    silent: Silent | None = None
    leaving: Leaving | None = None

    @property
    def staying(self) -> bool:
        """Counts as one of the workers wanted."""
        return self.leaving is None and self.retiring is None

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
class Trial:
    """The current generation has to show that it can boot; what it replaces serves meanwhile."""

    previous: int
    target: int
    policy: Policy
    """Of the previous generation, in force again if this one fails."""


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
    policy: Policy
    workers: Mapping[int, Worker] = field(default_factory=lambda: MappingProxyType({}))
    generation: int = 1
    next_nr: int = 1
    proven: bool = False
    """Some worker has been ready: the application can boot, and one that fails is worth another try."""
    stand_in: bool = False
    """What serves is no application but its traceback."""
    failures: tuple[Failure, ...] = ()
    """The workers that failed before any was ready."""
    backoff: Backoff = Backoff()
    trial: Trial | None = None
    loading: bool = False
    """A Reload was commanded and has not come back."""
    again: bool = False
    """Another reload was asked for while one is under way."""
    announced: float | None = None
    """TERM came and is followed at this time, so that load balancers notice first."""
    reopened: float = -NEVER
    """When the logs were last opened anew."""
    successor: int | None = None
    """The pid of the server that was started to replace this one (USR2)."""
    stopping: Stopping | None = None
    notices: Mapping[tuple[int, str], float] = field(default_factory=lambda: MappingProxyType({}))
    """What workers of a generation had to say, and when it was logged."""

    def with_worker(self, worker: Worker) -> State:
        return replace(self, workers=MappingProxyType({**self.workers, worker.nr: worker}))

    def without(self, nr: int) -> State:
        return replace(self, workers=MappingProxyType({k: w for k, w in self.workers.items() if k != nr}))

    def of(self, generation: int) -> list[Worker]:
        """The workers of a generation that are not on their way out, oldest first."""
        return [worker for worker in self.workers.values() if worker.generation == generation and worker.staying]

    def serving(self, generation: int) -> int:
        return sum(worker.ready is not None for worker in self.of(generation))

    def wanted(self) -> Iterator[tuple[int, int]]:
        """The generations that should have workers, and how many."""
        yield self.generation, self.target
        if self.trial is not None:
            yield self.trial.previous, self.trial.target

    def is_proven(self, generation: int) -> bool:
        """Whether a worker of this generation has served."""
        return self.proven and (self.trial is None or generation == self.trial.previous)

    def missing(self, generation: int, target: int) -> int:
        """How many workers to start; until the first is ready, failed ones are not tried again."""
        if self.stopping is not None:
            return 0
        # One that is killed because it does not boot is replaced when it is gone: what then happens depends on why.
        failing = sum(
            worker.generation == generation and worker.failure is not None and worker.leaving is not None
            for worker in self.workers.values()
        )
        return target - len(self.of(generation)) - failing - (0 if self.proven else len(self.failures))

    def deadlines(self) -> Iterator[float]:
        """When a Tick is due."""
        for worker in self.workers.values():
            yield from self._deadlines_of(worker)
        if any(self.missing(*wanted) > 0 for wanted in self.wanted()):
            yield self.backoff.until
        if self.announced is not None:
            yield self.announced

    def _deadlines_of(self, worker: Worker) -> Iterator[float]:
        if worker.leaving is not None:
            yield worker.leaving.deadline
        elif worker.ready is None:
            yield self.boot_deadline(worker)
        elif worker.wish is None and worker.retiring is None:
            yield self.end_of_life(worker)

    def boot_deadline(self, worker: Worker) -> float:
        if worker.overdue is not None:
            return worker.overdue
        return worker.started + self.policy.boot_timeout if self.policy.boot_timeout > 0 else NEVER

    def end_of_life(self, worker: Worker) -> float:
        if self.policy.max_lifetime <= 0 or worker.ready is None:
            return NEVER
        return worker.ready + self.policy.max_lifetime + worker.luck * self.policy.lifetime_jitter

    def next_deadline(self) -> float:
        return min(self.deadlines(), default=NEVER)

    def is_watched(self) -> bool:
        """Whether the loop should look at pages and memory from time to time, and tell."""
        return self.policy.max_memory > 0 or self.policy.timeout > 0 or self.has_stuck() or self.has_silent()

    def has_silent(self) -> bool:
        return any(worker.silent is not None for worker in self.workers.values())

    def has_stuck(self) -> bool:
        return any(worker.stuck for worker in self.workers.values())


Decision = tuple[State, list[Command]]
"""What follows from an event: the next state, and what is to be done."""
