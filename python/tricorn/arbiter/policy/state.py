"""State of the arbiter. Immutable; `decide` makes the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tricorn.arbiter.policy.commands import Command
from tricorn.arbiter.policy.settings import Policy
from tricorn.arbiter.policy.worker import Booting, Leaving, Serving, Worker, contribution
from tricorn.record import Record, replace

NEVER = float("inf")


class Backoff(Record):
    """Restraint in replacing workers that die young."""

    streak: int = 0
    last: float = -NEVER
    until: float = -NEVER
    """No worker is started before."""


class Failure(Record):
    """The reason why a worker of the first start did not boot."""

    code: int
    reason: str | None
    is_told: bool = False
    """The worker has logged it."""


class Trial(Record):
    """The current generation has to show that it can boot; what it replaces serves meanwhile."""

    previous: int
    target: int
    policy: Policy
    """The policy of the previous generation, in force again if this one fails."""
    scaled: int | None = None


class Stopping(Record):
    code: int
    failure: str | None
    """The reason; None when the stop was asked for."""
    quick: bool


class State(Record):
    target: int
    """Workers wanted."""
    policy: Policy
    extra: int = 0
    """Workers that a program's own arbiter has started besides."""
    workers: Mapping[int, Worker] = MappingProxyType({})
    generation: int = 1
    next_nr: int = 1
    proven: bool = False
    """Some worker has been ready: the application can boot, and one that fails is worth another try."""
    stand_in: bool = False
    """The traceback of the application is served in its stead."""
    complete: int | None = None
    """The generation of which all workers were seen serving."""
    failures: tuple[Failure, ...] = ()
    """The workers that failed before any was ready."""
    backoff: Backoff = Backoff()
    trial: Trial | None = None
    loading: bool = False
    """A Reload was commanded and has not come back."""
    reload_pending: bool = False
    """Another reload was asked for while one is under way."""
    drain_at: float | None = None
    """TERM came and is followed at this time, so that load balancers notice first."""
    reopened: float = -NEVER
    """The time when the logs were last opened again."""
    successor: int | None = None
    """The pid of the server that was started to replace this one (USR2)."""
    stopping: Stopping | None = None
    scaled: int | None = None
    """The number of workers that an operator has asked for: it outlives a reload that configures the same number."""
    unready: bool = False
    """An operator has readiness denied."""
    notices: Mapping[tuple[int, str], float] = MappingProxyType({})
    """Notices of the workers of a generation, and when they were logged."""

    def with_worker(self, worker: Worker) -> State:
        return replace(self, workers=MappingProxyType({**self.workers, worker.nr: worker}))

    def without(self, nr: int) -> State:
        return replace(self, workers=MappingProxyType({k: w for k, w in self.workers.items() if k != nr}))

    def of(self, generation: int) -> list[Worker]:
        """The workers of a generation that count, oldest first."""
        return [worker for worker in self.workers.values() if worker.generation == generation and worker.counts]

    def serving(self, generation: int) -> int:
        return sum(isinstance(worker.phase, Serving) for worker in self.of(generation))

    def serves_old_code(self) -> bool:
        """Whether clients may still be answered by a generation of before, with `reload`."""
        return self.policy.reload and any(
            isinstance(worker.phase, Leaving) and worker.phase.since is not None and not worker.parted
            for worker in self.workers.values()
            if worker.generation != self.generation
        )

    @property
    def is_unready(self) -> bool:
        """Whether workers answer the readiness path with 503."""
        return self.unready or self.drain_at is not None

    @property
    def is_reloading(self) -> bool:
        return self.loading or self.trial is not None

    @property
    def wanted_now(self) -> int:
        """Workers of this generation that should be there."""
        return self.target + self.extra

    def wanted(self) -> Iterator[tuple[int, int]]:
        """The generations that should have workers, and how many."""
        yield self.generation, self.wanted_now
        if self.trial is not None:
            yield self.trial.previous, self.trial.target

    def is_proven(self, generation: int) -> bool:
        """Whether a worker of this generation has served."""
        return self.proven and (self.trial is None or generation == self.trial.previous)

    def missing(self, generation: int, target: int) -> int:
        """Counts the workers to start; until the first is ready, failed ones are not tried again."""
        if self.stopping is not None:
            return 0
        # One that is killed because it does not boot is replaced when it is gone: what then happens depends on why.
        failing = sum(
            isinstance(worker.phase, Leaving) and worker.phase.failure is not None
            for worker in self.workers.values()
            if worker.generation == generation
        )
        return target - len(self.of(generation)) - failing - (0 if self.proven else len(self.failures))

    def surplus(self, generation: int, target: int) -> list[Worker]:
        """Returns the workers to stop so that `target` are left, those that contribute least first."""
        ranked = sorted(self.of(generation), key=contribution)
        return ranked[: max(0, len(ranked) - target)]

    def deadlines(self) -> Iterator[float]:
        """Lists when a Tick is due."""
        for worker in self.workers.values():
            yield self.deadline_of(worker)
        if any(self.missing(*wanted) > 0 for wanted in self.wanted()):
            yield self.backoff.until
        if self.drain_at is not None:
            yield self.drain_at

    def deadline_of(self, worker: Worker) -> float:
        """Returns when something has to be done about this worker."""
        policy = self.policy
        match worker.phase:
            case Booting(overdue=None):
                return worker.started + policy.boot_timeout if policy.boot_timeout > 0 else NEVER
            case Booting(overdue=float(overdue)):
                return overdue
            case Serving(since, None) if policy.max_worker_lifetime > 0:
                return since + policy.max_worker_lifetime + worker.jitter * policy.max_worker_lifetime_jitter
            case Leaving(deadline=deadline):
                return deadline
            case _:
                return NEVER

    def next_deadline(self) -> float:
        return min(self.deadlines(), default=NEVER)

    def is_watched(self) -> bool:
        """Whether the loop should look at pages and memory from time to time, and tell."""
        return self.policy.max_worker_memory > 0 or self.policy.timeout > 0 or self.has_stuck() or self.has_silent()

    def has_silent(self) -> bool:
        return any(worker.silent is not None for worker in self.workers.values())

    def has_stuck(self) -> bool:
        return any(worker.stuck for worker in self.workers.values())


Decision = tuple[State, list[Command]]
"""The next state, and what is to be done."""
