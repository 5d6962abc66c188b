"""The words of the control protocol: queries, inquiries and requests for the policy. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from tricorn.arbiter.control import inquiries
from tricorn.arbiter.control.inquiries import Inquiry
from tricorn.arbiter.policy import control_requests
from tricorn.arbiter.policy.arguments import Arguments, Refusal
from tricorn.arbiter.policy.events import ControlRequest
from tricorn.record import Record

LOOKS = (
    "status",
    "workers",
    "listeners",
    "stats",
    "pages",
    "requests",
    "routes",
    "sessions",
    "config",
    "health",
    "stalls",
    "slow",
)


class Query(Record):
    """A question that is answered at once (`report`)."""

    look: str
    """One of `LOOKS`."""
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
    """A subscription: from now on the client gets events."""


Meaning = Query | Follow | Inquiry | ControlRequest


class Command(Record):
    parse: Callable[[Arguments], Meaning]
    takes: tuple[str, ...] = ()
    """Names of its arguments."""


def parse(arguments: Arguments) -> Meaning:
    """Raises Refusal."""
    command = COMMANDS.get(arguments.word)
    if command is None:
        known = ", ".join(sorted(COMMANDS))
        raise Refusal("unknown", f"Unknown command {arguments.word[:40]!r}. Known commands: {known}.")
    unknown = arguments.given.keys() - set(command.takes)
    if unknown:
        raise Refusal("refused", f"{arguments.word} has no argument {min(unknown)[:40]!r}.")
    return command.parse(arguments)


def _stalls(arguments: Arguments) -> Query:
    match arguments.given.get("since", "start"):
        case "start" | "minute" as since:
            return Query("stalls", since=since, records=arguments.flag("records"))
    raise arguments.refusal("since", "start or minute")


def _plain(look: str) -> Command:
    return Command(lambda arguments: Query(look))


COMMANDS: Mapping[str, Command] = {
    **{look: _plain(look) for look in LOOKS},
    "status": Command(lambda arguments: Query("status", brief=arguments.flag("brief")), ("brief",)),
    "workers": Command(lambda arguments: Query("workers", brief=arguments.flag("brief")), ("brief",)),
    "requests": Command(lambda arguments: Query("requests", older=arguments.seconds("older")), ("older",)),
    "config": Command(lambda arguments: Query("config", changed=arguments.flag("changed")), ("changed",)),
    "stalls": Command(_stalls, ("since", "records")),
    "events": Command(lambda arguments: Follow()),
    **{each.word: Command(each.parse, each.takes) for each in inquiries.ALL},
    **{each.word: Command(each.parse, each.takes) for each in control_requests.ALL},
}
