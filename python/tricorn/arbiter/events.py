"""What happens to the arbiter. Workers are known by number; a pid is only a detail of one."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals


@dataclass(frozen=True, slots=True)
class Start:
    """The listeners are bound."""


@dataclass(frozen=True, slots=True)
class Signalled:
    signal: Signals


@dataclass(frozen=True, slots=True)
class Spawned:
    nr: int
    pid: int


@dataclass(frozen=True, slots=True)
class SpawnFailed:
    """The system would not fork."""

    nr: int
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerReady:
    nr: int


@dataclass(frozen=True, slots=True)
class WorkerBootFailed:
    """The worker says so, and is about to exit."""

    nr: int
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class ChildExited:
    nr: int
    status: int
    """The exit status, or the negative number of the signal that killed it."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A deadline of the state has come."""


Event = Start | Signalled | Spawned | SpawnFailed | WorkerReady | WorkerBootFailed | ChildExited | Tick
