"""What the arbiter does. `decide` returns these; the loop performs them."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals
from typing import Literal

Level = Literal["debug", "info", "warning", "error", "critical"]


@dataclass(frozen=True, slots=True)
class Spawn:
    """Forks a worker. Comes back as Spawned or SpawnFailed."""

    nr: int
    generation: int
    siblings: bool
    """Whether other workers share the listeners."""


@dataclass(frozen=True, slots=True)
class Send:
    """Sends a signal to a worker."""

    nr: int
    signal: Signals


@dataclass(frozen=True, slots=True)
class Log:
    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class CloseListeners:
    """Closes the arbiter's copies: the port is refused as soon as the last worker has closed its own."""


@dataclass(frozen=True, slots=True)
class ReopenLogs:
    pass


@dataclass(frozen=True, slots=True)
class Exit:
    code: int


Command = Spawn | Send | Log | CloseListeners | ReopenLogs | Exit
