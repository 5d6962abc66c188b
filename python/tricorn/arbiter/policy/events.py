"""Events that the policy decides on. Workers are known by number; a pid is only a detail of one."""

from __future__ import annotations

from signal import Signals
from typing import ClassVar

from tricorn.arbiter.policy.arguments import Arguments
from tricorn.arbiter.policy.canary import Look
from tricorn.arbiter.policy.settings import Policy
from tricorn.arbiter.policy.state import Decision, State
from tricorn.record import Record
from tricorn.workers.messages import Message


class Start(Record):
    """The listeners are bound."""


class Signalled(Record):
    signal: Signals


class Resized(Record):
    """A hook has set how many workers there should be."""

    workers: int


class SpawnRequested(Record):
    """A program's own arbiter starts one more worker."""


class KillRequested(Record):
    """A program's own arbiter tells a worker to go."""

    pid: int
    signal: Signals


class Spawned(Record):
    nr: int
    pid: int
    jitter: float = 0.0
    """A random number from 0 to 1, for what workers should not do all at once."""


class SpawnFailed(Record):
    """The system would not fork, or the hook before it failed."""

    nr: int
    reason: str


class Told(Record):
    """A worker has sent a message."""

    nr: int
    message: Message


class WorkerSeen(Record):
    """A look at a worker from outside: its page, and the system."""

    nr: int
    rss: int | None
    """Resident memory in bytes; None: not asked for, or not known."""
    in_flight: int
    queued: int
    silence: float
    """Seconds for which a request was in flight and nothing at all of the process ran, its monitor included."""
    heartbeat: int = 0
    """The time when it last said that it runs, by the worker's own clock."""
    served: int = 0
    """Requests that it has begun, if its class can become a mold (`refork`)."""


class Weighed(Record):
    """The memory of all processes of a generation was measured."""

    generation: int
    size: int | None
    """Bytes (PSS) a worker, its part of the mold included; None: they cannot be read."""


class Prepared(Record):
    """A new generation can be started."""

    generation: int
    policy: Policy
    configuration: bool = True
    """Settings may have changed, so that the hooks are called first."""


class Reloaded(Record):
    """The hooks of a reload have run."""

    generation: int
    policy: Policy
    target: int
    """The number of workers wanted, by the hooks if they have set one."""


class ReloadFailed(Record):
    reason: str


class CanarySeen(Record):
    """A look at the pages of both generations while canaries are watched."""

    generation: int
    look: Look
    opinion: bool | None = None
    """The verdict of the hook `canary_judge`: the new generation is good, or bad; None: it has none."""


class ChildExited(Record):
    nr: int
    status: int
    """The exit status, or the negative number of the signal that killed it."""
    serving: tuple[str, ...] = ()
    """The requests it was running, as its page tells: `GET /path (1.2 s)`."""


class Upgraded(Record):
    """A successor of the whole server was started, or (None) has ended."""

    pid: int | None


class ControlRequest(Record):
    """A request of a client of the control socket that changes workers or the server (`control_requests`)."""

    word: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    """Names of its arguments."""
    while_stopping: ClassVar[bool] = False
    """Allowed while the server stops."""

    @classmethod
    def parse(cls, arguments: Arguments) -> ControlRequest:
        """Raises Refusal."""
        return cls()

    def decide(self, state: State, ticket: int, now: float) -> Decision:
        raise NotImplementedError


class Requested(Record):
    """A client of the control socket has sent a request; the answer goes with its ticket."""

    ticket: int
    request: ControlRequest


class Quiet(Record):
    """During `drain_delay` no request has come for so many seconds, and none waits."""

    seconds: float


class Tick(Record):
    """A deadline of the state has come."""


Event = (
    Start
    | Signalled
    | Resized
    | SpawnRequested
    | KillRequested
    | Spawned
    | SpawnFailed
    | Told
    | WorkerSeen
    | Weighed
    | Prepared
    | Reloaded
    | ReloadFailed
    | CanarySeen
    | ChildExited
    | Upgraded
    | Requested
    | Quiet
    | Tick
)
