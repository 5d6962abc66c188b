"""Commands: `decide` returns them, the loop has them performed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from signal import Signals
from typing import Literal

from tricorn.arbiter.policy.settings import Policy
from tricorn.record import Record

Level = Literal["debug", "info", "warning", "error", "critical"]


class Spawn(Record):
    """Forks a worker. Comes back as Spawned or SpawnFailed."""

    nr: int
    generation: int
    siblings: bool
    """Whether other workers share the listeners."""
    proven: bool = False
    """A worker of this generation has served: the fork does not depend on the hook `pre_fork`."""
    stand_in: bool = False
    """An application that cannot be loaded is answered for with its traceback: nothing better serves yet."""
    mold: int | None = None
    """The number of the mold that forks it, which takes a moment; None: the arbiter does."""


class StartMold(Record):
    """Forks a mold for a generation. Comes back as Spawned or SpawnFailed."""

    nr: int
    generation: int


class Promote(Record):
    """Tells a worker that is about to leave to become the mold of its generation. It says what has become of that."""

    nr: int
    generation: int


class AdoptMold(Record):
    """Makes a worker's process that of a mold: it has ended as a worker."""

    nr: int


class Send(Record):
    """Sends a signal to a worker."""

    nr: int
    signal: Signals


class AskForStack(Record):
    """Has a worker write where its main thread is. Comes back as WorkerStack, or not at all."""

    nr: int


class Order(Record):
    """Writes an order into the pages of workers: their monitors read it though their Python may never run again."""

    nrs: tuple[int, ...]
    not_ready: bool = False
    drain: bool = False
    yields: bool = False
    """Takes no more connections when it drains: others listen on the same sockets."""
    replaced: bool = False
    """Others serve on when it has left: what waits is for them."""
    reconnect: bool = False
    """Closes each connection after its next response: clients connect anew, and meet workers started since."""


class Log(Record):
    level: Level
    text: str


class LogReady(Record):
    """Logs that all workers of the generation serve."""

    workers: int


class CloseListeners(Record):
    """Closes the arbiter's copies: the port is refused as soon as the last worker has closed its own."""


class ReopenLogs(Record):
    pass


class Reload(Record):
    """Reads the configuration again and prepares a generation. Comes back as Prepared or ReloadFailed."""

    configuration: bool = True
    """False: only the code changed; nothing but the workers is new."""


class RunReloadHooks(Record):
    """Calls `nworkers_changed` and `on_reload`. Comes back as Reloaded."""

    generation: int
    policy: Policy
    workers: int
    """The number of workers wanted from now on; the hooks may want another."""


class Commit(Record):
    """Makes a generation final: what only its predecessors needed can go."""

    generation: int


class Rollback(Record):
    """Gives up a generation: what was prepared for it goes, and what it replaced is in force again."""

    generation: int
    reason: str


class WorkersChanged(Record):
    """Tells the hook `nworkers_changed`."""

    new: int
    old: int


class ServiceState(Enum):
    """The state that the service manager is told (sd_notify)."""

    READY = "ready"
    RELOADING = "reloading"
    STOPPING = "stopping"


class Notify(Record):
    state: ServiceState


class StartSuccessor(Record):
    """Starts a successor of the whole server (USR2)."""


class Answer(Record):
    """Answers a request of the control socket."""

    ticket: int
    result: Mapping[str, object]


Kind = Literal["denied", "refused", "unknown", "busy"]


class Refuse(Record):
    """Tells a client of the control socket that its request is not done."""

    ticket: int
    kind: Kind
    sentence: str


class Exit(Record):
    code: int


Command = (
    Spawn
    | StartMold
    | Promote
    | AdoptMold
    | Send
    | AskForStack
    | Order
    | Log
    | LogReady
    | CloseListeners
    | ReopenLogs
    | Reload
    | RunReloadHooks
    | Commit
    | Rollback
    | WorkersChanged
    | Notify
    | StartSuccessor
    | Answer
    | Refuse
    | Exit
)
