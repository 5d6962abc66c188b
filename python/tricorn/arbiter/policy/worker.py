"""A worker as the policy knows it: what never changes, and its phase with what is known in that phase only.

Booting ──ready──▶ Serving ──its turn, or stuck──▶ Retiring
   │                  │                               │ its successor serves
   └──────────────────┴─────── told to leave ─────────┴──▶ Leaving ──exit──▶ gone
Booting ──fails──▶ gone
"""

from __future__ import annotations

from signal import Signals
from typing import Literal

from tricorn.record import Record, replace


class Silent(Record):
    """A worker seems not to run. Perhaps it was stopped together with the arbiter, and is about to go on."""

    heartbeat: int
    """The last one; with another it runs."""
    since: float
    """The time when the arbiter first saw that, by its own clock."""


class Booting(Record):
    failure: str | None = None
    """The reason why it cannot boot: it said so, and is about to exit."""
    overdue: float | None = None
    """The time at which it is killed: it takes too long, and was asked where it is."""
    stack: tuple[str, ...] = ()
    """The answer."""


class Serving(Record):
    since: float
    retire_reason: str | None = None
    """The reason to replace it, when its turn comes."""
    silent: Silent | None = None


class Retiring(Record):
    """Serves on until its successor does, and is none of the workers wanted."""

    since: float
    """The time when it began to serve."""
    reason: str
    stuck: int = 0
    """Requests that hold a thread of it for longer than `timeout`."""
    silent: Silent | None = None


class Leaving(Record):
    """Was sent a signal; if it is still there at `deadline` it is sent a stronger one."""

    sent_signal: Signals
    deadline: float
    since: float | None = None
    """The time when it began to serve; None if it did not."""
    failure: str | None = None
    """The reason why it could not boot."""
    replaced: bool = False
    """Its successor serves already."""
    stuck: int = 0


Phase = Booting | Serving | Retiring | Leaving

Cause = Literal[
    "boot",
    "killed",
    "crash",
    "max_requests",
    "lifetime",
    "memory",
    "refork",
    "timeout",
    "reload",
    "scale",
    "shutdown",
    "asked",
]
"""The cause of an exit, as metrics have it."""


def told_to_leave(phase: Phase, signal: Signals, deadline: float) -> Leaving:
    match phase:
        case Booting():
            return Leaving(signal, deadline, failure=phase.failure)
        case Serving():
            return Leaving(signal, deadline, phase.since)
        case Retiring():
            return Leaving(signal, deadline, phase.since, replaced=True, stuck=phase.stuck)
        case Leaving():
            return replace(phase, sent_signal=signal, deadline=deadline)


class Worker(Record):
    nr: int
    generation: int
    started: float
    pid: int | None = None
    jitter: float = 0.0
    """A random number from 0 to 1, for what workers should not do all at once."""
    phase: Phase = Booting()
    cause: Cause | None = None
    """The first reason to go, once it is decided."""
    parted: bool = False
    """Has closed its idle connections, and leaves; said with `reload` only."""
    is_mold: bool = False
    """Loads the application and forks the workers of its generation (`molding`): its phases are Booting, Serving and
    Leaving, and it serves no request."""
    mold: int | None = None
    """The number of the mold that forks it; None: the arbiter does."""
    failed_forks: int = 0
    """Forks of a mold that have failed one after another."""
    level: int = 0
    """How many numbers of `refork` this mold has in its past (`reforking`); 0: it has loaded the application itself."""
    becomes_mold: bool = False
    """It is to become the mold when it has drained."""

    def because(self, cause: Cause) -> Worker:
        return self if self.cause is not None else replace(self, cause=cause)

    @property
    def counts(self) -> bool:
        """Whether it is one of the workers wanted."""
        return isinstance(self.phase, Booting | Serving)

    @property
    def served_since(self) -> float | None:
        """The time when it said that it serves; None if it did not yet."""
        return None if isinstance(self.phase, Booting) else self.phase.since

    @property
    def stuck(self) -> int:
        return self.phase.stuck if isinstance(self.phase, Retiring | Leaving) else 0

    @property
    def silent(self) -> Silent | None:
        return self.phase.silent if isinstance(self.phase, Serving | Retiring) else None

    def __str__(self) -> str:
        return f"{'Mold' if self.is_mold else 'Worker'} (pid:{self.pid})"


def contribution(worker: Worker) -> tuple[int, int]:
    """Returns a sort key for the workers that count: the larger, the more the service loses if this one leaves.

    A booting worker answers no request yet; of several the youngest has the longest way to go. Of those that serve, one
    that gives no sign of life or is due to be replaced comes before the others, and among equals the oldest goes first,
    as under gunicorn.
    """
    match worker.phase:
        case Booting(failure=None, overdue=None):
            return 1, -worker.nr
        case Booting():
            return 0, -worker.nr
        case Serving(silent=Silent()):
            return 2, worker.nr
        case Serving(retire_reason=str()):
            return 3, worker.nr
        case _:
            return 4, worker.nr
