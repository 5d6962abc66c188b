"""What happens to the arbiter. Workers are known by number; a pid is only a detail of one."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals

from tricorn.arbiter.policy.state import Policy
from tricorn.workers.messages import Message


@dataclass(frozen=True, slots=True)
class Start:
    """The listeners are bound."""


@dataclass(frozen=True, slots=True)
class Signalled:
    signal: Signals


@dataclass(frozen=True, slots=True)
class Resized:
    """A hook has set how many workers there should be."""

    workers: int


@dataclass(frozen=True, slots=True)
class Spawned:
    nr: int
    pid: int
    jitter: float = 0.0
    """A random number from 0 to 1, for what workers should not do all at once."""


@dataclass(frozen=True, slots=True)
class SpawnFailed:
    """The system would not fork, or the hook before it failed."""

    nr: int
    reason: str


@dataclass(frozen=True, slots=True)
class Told:
    """A worker has sent a message."""

    nr: int
    message: Message


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """What its page and the system say of a worker."""

    nr: int
    rss: int | None
    """Resident memory in bytes; None: not asked for, or not known."""
    in_flight: int
    queued: int
    silence: float
    """Seconds for which a request was in flight and nothing at all of the process ran, its monitor included."""
    heartbeat: int = 0
    """When it last said that it runs, in the worker's own figures."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """A new generation can be started."""

    generation: int
    target: int
    policy: Policy


@dataclass(frozen=True, slots=True)
class ReloadFailed:
    reason: str


@dataclass(frozen=True, slots=True)
class ChildExited:
    nr: int
    status: int
    """The exit status, or the negative number of the signal that killed it."""
    serving: tuple[str, ...] = ()
    """The requests it was running, as its page tells: `GET /path (1.2 s)`."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """A successor of the whole server was started, or (None) has ended."""

    pid: int | None


@dataclass(frozen=True, slots=True)
class Tick:
    """A deadline of the state has come."""


Event = (
    Start
    | Signalled
    | Resized
    | Spawned
    | SpawnFailed
    | Told
    | WorkerSeen
    | Reloaded
    | ReloadFailed
    | ChildExited
    | Upgraded
    | Tick
)
