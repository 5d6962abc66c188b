"""What an operator may ask for over the control socket."""

from __future__ import annotations

from typing import Literal

from tricorn.record import Record

LogLevel = Literal["debug", "info", "warning", "error", "critical"]


class ReloadAll(Record):
    """As HUP."""

    wait: bool = False
    """The answer comes when the new generation serves, or has failed."""


class Scale(Record):
    """How many workers there should be: so many, so many more or less than now, or (both None) as configured."""

    target: int | None = None
    by: int | None = None


class Drain(Record):
    """Replaces a worker: its successor first."""

    nr: int
    wait: bool = False
    """The answer comes when it is gone."""


class Kill(Record):
    """Sends TERM to a worker, which is replaced."""

    nr: int


class Stacks(Record):
    """Where the threads of these workers are."""

    nrs: tuple[int, ...]


class Profile(Record):
    """Has everything sampled that these workers do."""

    nrs: tuple[int, ...]
    seconds: float
    rate: int
    """Looks per second."""


class Cancel(Record):
    """Ends one request."""

    nr: int
    place: int
    """Which of the worker's calls."""
    start: int
    """When it began: makes sure that it is still that one."""


class Welcome(Record):
    """Whether readiness is answered with 200, for load balancers; requests are served in any case."""

    on: bool


class SetLogLevel(Record):
    level: LogLevel


class Reopen(Record):
    """As USR1."""


class Replace(Record):
    """As USR2."""


class Shutdown(Record):
    quick: bool = False


Wish = (
    ReloadAll | Scale | Drain | Kill | Stacks | Profile | Cancel | Welcome | SetLogLevel | Reopen | Replace | Shutdown
)
