"""What a request asks for: something to look at, to follow, or a wish for the policy. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, get_args

from tricorn.arbiter.control.session import Request
from tricorn.arbiter.policy.commands import Kind
from tricorn.arbiter.policy.wishes import (
    Cancel,
    Drain,
    Kill,
    LogLevel,
    Profile,
    ReloadAll,
    Reopen,
    Replace,
    Scale,
    SetLogLevel,
    Shutdown,
    Stacks,
    Welcome,
    Wish,
)
from tricorn.record import Record

Arguments = Mapping[str, object]

MOST_NUMBER = 1 << 31
MOST_MOMENT = (1 << 64) - 1
"""Nanoseconds."""

LEAST_SECONDS, MOST_SECONDS, MOST_RATE = 0.1, 600.0, 1000
"""Of a profile."""

Look = Literal[
    "status",
    "workers",
    "listeners",
    "stats",
    "pages",
    "requests",
    "routes",
    "config",
    "health",
    "stalls",
    "slow",
]
"""What is answered at once, of what is known."""

Find = Callable[[str, int], int | None]
"""The number by which the policy knows a worker, by its `slot` or `pid`."""


class Refusal(Exception):
    """The request is not done; one sentence says why."""

    def __init__(self, kind: Kind, sentence: str) -> None:
        super().__init__(sentence)
        self.kind: Kind = kind


class Read(Record):
    look: Look
    older: float = 0.0
    """`requests`: only those that have run for so many seconds."""
    brief: bool = False
    """`status` and `workers`: without what stands in the pages, for readers that have these."""
    since: Literal["start", "minute"] = "start"
    """`stalls`: summed up over this time."""
    records: bool = False
    """`stalls`: with the last ones, each by itself."""
    changed: bool = False
    """`config`: only what is not as it is without any configuration."""


class Follow(Record):
    """From now on the client is told what happens."""


Meant = Read | Follow | Wish


def meaning(request: Request, find: Find, everyone: Callable[[], tuple[int, ...]]) -> Meant:
    """`everyone` are the numbers of all workers. Raises Refusal."""
    known = _WORDS.get(request.word)
    if known is None:
        raise Refusal("unknown", f"There is no word {request.word[:40]!r}; there are: {', '.join(sorted(_WORDS))}.")
    unknown = request.arguments.keys() - known.arguments
    if unknown:
        raise Refusal("refused", f"{request.word} has no argument {min(unknown)[:40]!r}.")
    return known.make(Given(request.word, request.arguments, find, everyone))


class Given(Record):
    """The arguments of a request, each of the type that is wanted."""

    word: str
    arguments: Arguments
    find: Find
    everyone: Callable[[], tuple[int, ...]]

    def flag(self, name: str, *, needed: bool = False) -> bool:
        value = self.arguments.get(name, None if needed else False)
        if not isinstance(value, bool):
            raise self.refusal(name, "true or false")
        return value

    def number(self, name: str, default: int | None = None, most: int = MOST_NUMBER) -> int:
        value = self.arguments.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise self.refusal(name, "a whole number")
        return value

    def seconds(self, name: str) -> float:
        value = self.arguments.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise self.refusal(name, "a number of seconds")
        return value

    def worker(self, name: str) -> int:
        """The policy's number of the worker with this `slot` or `pid`."""
        given = self.number(name)
        found = self.find(name, given)
        if found is None:
            raise Refusal("refused", f"There is no worker with the {name} {given}.")
        return found

    def refusal(self, name: str, wanted: str) -> Refusal:
        return Refusal("refused", f"{self.word} wants {wanted} as {name!r}.")


class _Word(Record):
    make: Callable[[Given], Meant]
    arguments: frozenset[str] = frozenset()


def _scale(given: Given) -> Scale:
    """`6`, `"6"`, `"+2"`, `"-1"`, `"auto"`."""
    value = given.arguments.get("workers")
    if isinstance(value, int) and not isinstance(value, bool):
        return Scale(given.number("workers"))
    if value == "auto":
        return Scale()
    if isinstance(value, str) and len(value) <= 8:
        sign, digits = (value[0], value[1:]) if value[:1] in ("+", "-") else ("", value)
        if digits.isascii() and digits.isdigit():
            return Scale(by=int(value)) if sign else Scale(int(digits))
    raise given.refusal("workers", "a number such as 6, +2 or -1, or auto")


def _stacks(given: Given) -> Stacks:
    return Stacks((given.worker("slot"),) if "slot" in given.arguments else given.everyone())


def _profile(given: Given) -> Profile:
    seconds, rate = given.seconds("seconds"), given.number("rate", 100)
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise given.refusal("seconds", f"{LEAST_SECONDS:g} to {MOST_SECONDS:g} seconds")
    if not 1 <= rate <= MOST_RATE:
        raise given.refusal("rate", f"1 to {MOST_RATE} looks per second")
    return Profile((given.worker("slot"),) if "slot" in given.arguments else given.everyone(), seconds, rate)


def _stalls(given: Given) -> Read:
    match given.arguments.get("since", "start"):
        case "start" | "minute" as since:
            return Read("stalls", since=since, records=given.flag("records"))
    raise given.refusal("since", "start or minute")


def _cancel(given: Given) -> Cancel:
    return Cancel(given.worker("slot"), given.number("place"), given.number("start", most=MOST_MOMENT))


def _log_level(given: Given) -> SetLogLevel:
    value = given.arguments.get("level")
    for level in _LEVELS:
        if level == value:
            return SetLogLevel(level)
    raise given.refusal("level", f"one of {', '.join(_LEVELS)}")


def _word(make: Callable[[Given], Meant], *arguments: str) -> _Word:
    return _Word(make, frozenset(arguments))


_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)

_WORDS: dict[str, _Word] = {
    "status": _word(lambda given: Read("status", brief=given.flag("brief")), "brief"),
    "workers": _word(lambda given: Read("workers", brief=given.flag("brief")), "brief"),
    "listeners": _word(lambda given: Read("listeners")),
    "stats": _word(lambda given: Read("stats")),
    "pages": _word(lambda given: Read("pages")),
    "health": _word(lambda given: Read("health")),
    "requests": _word(lambda given: Read("requests", older=given.seconds("older")), "older"),
    "routes": _word(lambda given: Read("routes")),
    "slow": _word(lambda given: Read("slow")),
    "config": _word(lambda given: Read("config", changed=given.flag("changed")), "changed"),
    "stalls": _word(_stalls, "since", "records"),
    "events": _word(lambda given: Follow()),
    "reload": _word(lambda given: ReloadAll(given.flag("wait")), "wait"),
    "scale": _word(_scale, "workers"),
    "stacks": _word(_stacks, "slot"),
    "profile": _word(_profile, "seconds", "rate", "slot"),
    "cancel": _word(_cancel, "slot", "place", "start"),
    "drain": _word(lambda given: Drain(given.worker("slot"), given.flag("wait")), "slot", "wait"),
    "kill": _word(lambda given: Kill(given.worker("pid")), "pid"),
    "ready": _word(lambda given: Welcome(given.flag("on", needed=True)), "on"),
    "log-level": _word(_log_level, "level"),
    "reopen": _word(lambda given: Reopen()),
    "upgrade": _word(lambda given: Replace()),
    "shutdown": _word(lambda given: Shutdown(given.flag("quick")), "quick"),
}
