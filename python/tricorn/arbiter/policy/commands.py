"""What the arbiter does. `decide` returns these; the loop performs them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from signal import Signals
from typing import Literal

from tricorn.record import Record
from tricorn.workers.stall import Stall

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


class Send(Record):
    """Sends a signal to a worker."""

    nr: int
    signal: Signals


class AskForStack(Record):
    """Has a worker write where its main thread is. Comes back as WorkerStack, or not at all."""

    nr: int


class AskForStacks(Record):
    """Has workers write where all of their threads are."""

    nrs: tuple[int, ...]


class TellStacks(Record):
    """Answers with what they have written."""

    ticket: int
    nrs: tuple[int, ...]


class OrderProfile(Record):
    """Has the samplers of workers look at everything for so long; 0: they end what they are at."""

    nrs: tuple[int, ...]
    seconds: float
    rate: int = 0


class TellProfile(Record):
    """Answers with what they have seen."""

    ticket: int
    nrs: tuple[int, ...]


class OrderCancel(Record):
    """Has the monitor of a worker end one of its calls."""

    nr: int
    place: int
    start: int


class TellCancelled(Record):
    """Answers with what has become of that; a worker that has not heard of it by now will not."""

    ticket: int
    nr: int


class Order(Record):
    """Writes an order into the pages of workers: their monitors read it though their Python may never run again."""

    nrs: tuple[int, ...]
    not_ready: bool = False
    drain: bool = False
    yields: bool = False
    """When it drains it takes no more connections: others listen on the same sockets."""
    replaced: bool = False
    """Others serve on when it has left: what waits is for them."""


class Log(Record):
    level: Level
    text: str


class NoteStall(Record):
    """Keeps what has held up the loop of a worker, and logs it from time to time."""

    nr: int
    stall: Stall


class LogReady(Record):
    """Logs that all workers of the generation serve."""

    workers: int


class CloseListeners(Record):
    """Closes the arbiter's copies: the port is refused as soon as the last worker has closed its own."""


class ReopenLogs(Record):
    pass


class Reload(Record):
    """Reads the configuration anew and prepares a generation. Comes back as Reloaded or ReloadFailed."""

    configuration: bool = True
    """False: only the code changed; nothing but the workers is new."""


class Commit(Record):
    """A generation serves: what only its predecessors needed can go."""

    generation: int


class Rollback(Record):
    """A generation is given up: what was prepared for it goes, and what it replaced is in force again."""

    generation: int


class WorkersChanged(Record):
    """Tells the hook `nworkers_changed`."""

    new: int
    old: int


class ServiceState(Enum):
    """What the service manager is told (sd_notify)."""

    READY = "ready"
    RELOADING = "reloading"
    STOPPING = "stopping"


class Notify(Record):
    state: ServiceState


class StartSuccessor(Record):
    """Starts a successor of the whole server (USR2)."""


class ChangeLogLevel(Record):
    """Of the arbiter's log, and with it of workers that are forked from now on."""

    level: Level


class TellLogLevel(Record):
    """Has workers that serve take this level."""

    nrs: tuple[int, ...]
    level: Level


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
    | Send
    | AskForStack
    | AskForStacks
    | TellStacks
    | OrderProfile
    | TellProfile
    | OrderCancel
    | TellCancelled
    | Order
    | Log
    | LogReady
    | NoteStall
    | CloseListeners
    | ReopenLogs
    | Reload
    | Commit
    | Rollback
    | WorkersChanged
    | Notify
    | StartSuccessor
    | ChangeLogLevel
    | TellLogLevel
    | Answer
    | Refuse
    | Exit
)
