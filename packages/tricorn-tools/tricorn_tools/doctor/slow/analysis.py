"""Slow and usual requests of each route, out of what the workers have noted. Pure.

A request is *slow* if it is among the slowest per cent of its route: the boundary is the lower edge of the bucket of
durations in which that per cent begins. Of requests that ended before `profile_after` it is known only that they did:
a line at which slow ones were for no longer than that may be one that all requests have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tricorn.record import Record
from tricorn_tools.doctor.stacks import Frame, Stack, of_application, split

SLOWEST = 0.01
"""The share of a route's requests that is slow."""
EDGES = (0.0, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Seconds: lower edges of the buckets (`EXPORTED` in crates/tricorn-figures/src/scoreboard/buckets.rs)."""
SHARE = 0.02
"""A line that takes less of the slow requests' time is left out."""


class Line(Record):
    """Line of code at which slow requests spent longer than usual ones."""

    stack: Stack
    slow: float
    """Seconds per slow request."""
    usual: float
    """Seconds per usual request."""
    native: Frame | None = None
    """The function in C that it waited in for longest, where one was seen."""

    @property
    def more(self) -> float:
        return self.slow - self.usual

    @property
    def whole(self) -> Stack:
        return self.stack if self.native is None else (*self.stack, self.native)


class Route(Record):
    name: str
    requests: int
    """About how many there were."""
    slow: int
    boundary: float
    """Seconds: slow is what took longer."""
    lines: tuple[Line, ...]
    """Lines by their cost, highest first."""
    seen: float
    """Seconds of the slow requests that were seen."""
    lost: float
    """Seconds for which there was no room."""


class Report(Record):
    routes: tuple[Route, ...]
    late: int
    """Samples that were taken late, or not at all."""


def analyse(answer: Mapping[str, Any], wanted: str | None = None) -> Report:
    """`answer`: of the control socket's word `slow`. Workers that wrote rubbish are left out."""
    late = 0
    sums: dict[str, _Sum] = {}
    for worker in answer["workers"]:
        profile = worker["profile"]
        try:
            told = [_read(each, float(profile["after"]) / 1000) for each in profile["routes"]]
            late += int(profile["late"])
        except (LookupError, TypeError, ValueError, AttributeError):
            continue
        for each in told:
            sums.setdefault(each.name, _Sum(each.name)).add(each)
    found = [_route(each) for name, each in sums.items() if wanted in (None, name)]
    found.sort(key=lambda route: (-sum(line.more for line in route.lines) * route.slow, route.name))
    return Report(tuple(found), late)


class _Sum:
    """A route, in one worker or in all of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.early = 0
        self.after = 0.0
        """Seconds that one of those may have been at any line."""
        self.lost = 0.0
        self.requests = [0] * len(EDGES)
        self.stacks: dict[Stack, list[float]] = {}
        self.natives: dict[Stack, dict[Frame, float]] = {}
        """C functions of each stack, with their seconds."""

    def add(self, other: _Sum) -> None:
        self.early += other.early
        self.after = max(self.after, other.after)
        self.lost += other.lost
        self.requests = [a + b for a, b in zip(self.requests, other.requests, strict=True)]
        for stack, weights in other.stacks.items():
            self.see(stack, None, weights)
        for stack, natives in other.natives.items():
            for native, seconds in natives.items():
                self.see_native(stack, native, seconds)

    def see(self, stack: Stack, native: Frame | None, weights: Sequence[float]) -> None:
        before = self.stacks.get(stack, [0.0] * len(EDGES))
        self.stacks[stack] = [a + b for a, b in zip(before, weights, strict=True)]
        if native is not None:
            self.see_native(stack, native, sum(weights))

    def see_native(self, stack: Stack, native: Frame, seconds: float) -> None:
        natives = self.natives.setdefault(stack, {})
        natives[native] = natives.get(native, 0.0) + seconds

    def native(self, stack: Stack) -> Frame | None:
        natives = self.natives.get(stack)
        return max(natives, key=lambda native: natives[native]) if natives else None


def _read(told: Mapping[str, Any], after: float) -> _Sum:
    found = _Sum(str(told["route"]))
    found.early, found.after = int(told["early"]), after
    found.lost = float(told["lost_milliseconds"]) / 1000
    found.requests = _numbers(told["requests"])
    for each in told["stacks"]:
        frames = (Frame(str(file), int(line), str(function)) for file, line, function in reversed(each["frames"]))
        stack, native = split(of_application(tuple(frames)))
        weights = [number / 1000 for number in _numbers(each["milliseconds"])]
        if stack:
            found.see(stack, native, weights)
    return found


def _numbers(told: Sequence[Any]) -> list[int]:
    if len(told) != len(EDGES):
        raise ValueError
    return [int(number) for number in told]


def _route(total: _Sum) -> Route:
    requests = total.early + sum(total.requests)
    first = _first_slow(total.requests, requests)
    slow = sum(total.requests[first:])
    usual = requests - slow
    lines = []
    seen = 0.0
    for stack, weights in total.stacks.items():
        of_slow, of_usual = sum(weights[first:]), sum(weights[:first])
        seen += of_slow
        if of_slow > 0:
            lines.append(Line(stack, of_slow / max(slow, 1), of_usual / max(usual, 1), total.native(stack)))
    # Where requests that ended early were is not known: it may have been here.
    least = max(SHARE * seen / max(slow, 1), total.after * total.early / max(usual, 1))
    lines = sorted((line for line in lines if line.more > least), key=lambda line: (-line.more, line.stack[-1].file))
    return Route(total.name, requests, slow, EDGES[first], tuple(lines), seen, total.lost)


def _first_slow(requests: Sequence[int], total: int) -> int:
    """The bucket in which the slowest per cent begins; the first that has requests, if all of those are so few."""
    wanted = SLOWEST * total
    above = 0
    first = len(requests) - 1
    for bucket in range(len(requests) - 1, -1, -1):
        if requests[bucket]:
            above += requests[bucket]
            first = bucket
            if above >= wanted:
                break
    return first
