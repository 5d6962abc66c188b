"""State of the arbiter. Immutable; `decide` makes the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tricorn.arbiter.policy.canary import Plan, Watch
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
    watch: Watch | None = None
    """Only canaries are wanted of the current generation; None: all workers."""


class Refork(Record):
    """Progress of a generation with `refork`."""

    generation: int
    weighs: bool = False
    """The memory of its processes is to be measured."""
    before: int | None = None
    """Bytes a worker before the last one, 0 if they are not known; None: not measured, or compared already."""
    level: int = 0
    """The mold's level then."""
    failures: int = 0
    is_off: bool = False
    """No more is tried."""


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
    molds: Mapping[int, Worker] = MappingProxyType({})
    """Processes that have loaded the application and fork workers (`molding`); numbered with the workers."""
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
    refork: Refork = Refork(0)
    loading: bool = False
    """A Reload was commanded and has not come back."""
    reload_pending: bool = False
    """Another reload was asked for while one is under way."""
    canary: Plan | None = None
    """Asked for with the reload that is being loaded, in place of the configured one."""
    next_canary: Plan | None = None
    """Asked for with the reload that is pending."""
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
        if worker.is_mold:
            return replace(self, molds=MappingProxyType({**self.molds, worker.nr: worker}))
        return replace(self, workers=MappingProxyType({**self.workers, worker.nr: worker}))

    def without(self, nr: int) -> State:
        if nr in self.molds:
            return replace(self, molds=MappingProxyType({k: m for k, m in self.molds.items() if k != nr}))
        return replace(self, workers=MappingProxyType({k: w for k, w in self.workers.items() if k != nr}))

    @property
    def processes(self) -> Mapping[int, Worker]:
        """Workers and molds."""
        return {**self.workers, **self.molds} if self.molds else self.workers

    def mold_of(self, generation: int) -> Worker | None:
        """The mold of a generation that boots, or forks its workers."""
        found = (each for each in self.molds.values() if each.generation == generation)
        return next((each for each in found if not isinstance(each.phase, Leaving)), None)

    def refork_of_generation(self) -> Refork:
        return self.refork if self.refork.generation == self.generation else Refork(self.generation)

    def policy_of(self, generation: int) -> Policy:
        return self.trial.policy if self.trial is not None and generation == self.trial.previous else self.policy

    def lacks_mold(self, generation: int, target: int) -> bool:
        """Whether a mold is to be made; until a worker has served, one that failed is not tried again."""
        given_up = self.stopping is not None or (not self.proven and bool(self.failures))
        if target <= 0 or given_up or not self.policy_of(generation).molds:
            return False
        # One that is killed because it is of no use is replaced when it is gone: what then happens depends on why.
        return not any(
            not isinstance(mold.phase, Leaving) or mold.phase.failure is not None
            for mold in self.molds.values()
            if mold.generation == generation
        )

    def can_fork(self, generation: int) -> bool:
        """Whether there is what forks workers of this generation."""
        if not self.policy_of(generation).molds:
            return True
        mold = self.mold_of(generation)
        return mold is not None and isinstance(mold.phase, Serving)

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
    def watch(self) -> Watch | None:
        return None if self.trial is None else self.trial.watch

    @property
    def wanted_now(self) -> int:
        """Workers of this generation that should be there."""
        return self.target + self.extra

    def wanted(self) -> Iterator[tuple[int, int]]:
        """The generations that should have workers, and how many."""
        watch = self.watch
        yield self.generation, self.wanted_now if watch is None else min(watch.workers, self.wanted_now)
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
        for worker in self.processes.values():
            yield self.deadline_of(worker)
        if any(self.missing(*wanted) > 0 or self.lacks_mold(*wanted) for wanted in self.wanted()):
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
            case Serving(since, None) if policy.max_worker_lifetime > 0 and not worker.is_mold:
                return since + policy.max_worker_lifetime + worker.jitter * policy.max_worker_lifetime_jitter
            case Leaving(deadline=deadline):
                return deadline
            case _:
                return NEVER

    def next_deadline(self) -> float:
        return min(self.deadlines(), default=NEVER)

    def is_watched(self) -> bool:
        """Whether the loop should look at pages and memory from time to time, and tell."""
        policy = self.policy
        is_limited = policy.max_worker_memory > 0 or policy.timeout > 0 or bool(policy.refork)
        return is_limited or self.has_stuck() or self.has_silent()

    def has_silent(self) -> bool:
        return any(worker.silent is not None for worker in self.workers.values())

    def has_stuck(self) -> bool:
        return any(worker.stuck for worker in self.workers.values())


Decision = tuple[State, list[Command]]
"""The next state, and what is to be done."""
