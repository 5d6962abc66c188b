"""Aggregation of the workers' samples: time by owner and by stack. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tricorn.record import Record
from tricorn_tools.doctor.stacks import Frame, Stack, of_application

ORDER = ("request", "loop", "thread")
"""Kinds of owners: routes, what an event loop is at without a request, threads that compute without one."""


class Cost(Record):
    """Time of one stack, or of one function."""

    seconds: float
    samples: int


class Owner(Record):
    of: str
    name: str
    requests: int
    """Number of requests that were seen."""
    seconds: float
    """Seconds in which the requests ran, or the thread worked, summed over all workers."""
    stacks: Mapping[Stack, Cost]


class Worker(Record):
    slot: int
    pid: int
    kind: str
    seconds: float
    """Seconds for which the worker was sampled."""
    of: Mapping[str, float]
    """Seconds by the kind of owner."""
    looks: int
    late: int
    """Looks that came late, or not at all: the sampler could not keep up."""
    missed: int
    """Samples of which nothing could be told."""
    lost: float
    """Seconds of samples for which there was no room."""
    cost: float
    """The share of a processor that the sampler had, with what it had the hub do."""
    ended: bool


class Report(Record):
    workers: tuple[Worker, ...]
    owners: tuple[Owner, ...]
    """The most expensive first; routes before the others."""
    missing: tuple[int | None, ...]
    """Slots of workers that have told nothing; None: one that is gone."""


class Function(Record):
    file: str
    name: str
    own: float
    """Seconds in which it was the innermost one."""
    whole: float
    """Seconds with those that it called."""


def analyse(answer: Mapping[str, Any], route: str | None = None) -> Report:
    """`answer`: of the control socket's word `profile`. Workers that wrote rubbish have told nothing."""
    workers: list[Worker] = []
    missing: list[int | None] = list(answer["missing"])
    owners: dict[tuple[str, str], Owner] = {}
    for told in answer["workers"]:
        try:
            worker, found = _read(told)
        except (LookupError, TypeError, ValueError, AttributeError):
            missing.append(told["slot"])
            continue
        workers.append(worker)
        for owner in found:
            key = (owner.of, owner.name)
            owners[key] = _sum(owners[key], owner) if key in owners else owner
    wanted = [owner for owner in owners.values() if route is None or (owner.of, owner.name) == ("request", route)]
    wanted.sort(key=lambda owner: (ORDER.index(owner.of), -owner.seconds, owner.name))
    return Report(tuple(sorted(workers, key=lambda each: each.slot)), tuple(wanted), tuple(missing))


def _read(told: Mapping[str, Any]) -> tuple[Worker, list[Owner]]:
    profile = told["profile"]
    frames = [Frame(str(file), int(line), str(function)) for file, line, function in profile["frames"]]
    seconds = float(profile["milliseconds"]) / 1000
    owners = [_owner(each, frames) for each in profile["owners"]]
    of = {kind: sum(owner.seconds for owner in owners if owner.of == kind) for kind in ORDER}
    worker = Worker(
        slot=int(told["slot"]),
        pid=int(told["pid"]),
        kind=str(told["class"]),
        seconds=seconds,
        of=of,
        looks=int(profile["looks"]),
        late=int(profile["late"]),
        missed=int(profile["missed"]),
        lost=float(profile["lost_microseconds"]) / 1e6,
        cost=float(profile["cost_microseconds"]) / 1e6 / seconds if seconds > 0 else 0.0,
        ended=profile["ended"] is True,
    )
    return worker, owners


def _owner(told: Mapping[str, Any], frames: Sequence[Frame]) -> Owner:
    of = str(told["of"])
    if of not in ORDER:
        raise ValueError
    stacks: dict[Stack, Cost] = {}
    for numbers, samples, microseconds in told["stacks"]:
        if any(number < 0 for number in numbers):
            raise ValueError
        stack = of_application(tuple(frames[number] for number in reversed(numbers)))
        if stack:
            _add(stacks, stack, Cost(float(microseconds) / 1e6, int(samples)))
    return Owner(of, str(told["name"]), int(told["requests"]), float(told["microseconds"]) / 1e6, stacks)


def _add(stacks: dict[Stack, Cost], stack: Stack, cost: Cost) -> None:
    before = stacks.get(stack, Cost(0.0, 0))
    stacks[stack] = Cost(before.seconds + cost.seconds, before.samples + cost.samples)


def _sum(one: Owner, other: Owner) -> Owner:
    stacks = dict(one.stacks)
    for stack, cost in other.stacks.items():
        _add(stacks, stack, cost)
    return Owner(one.of, one.name, one.requests + other.requests, one.seconds + other.seconds, stacks)


def functions(owners: Iterable[Owner]) -> list[Function]:
    """Returns functions by their own time, longest first; a recursive function counts once."""
    own: dict[tuple[str, str], float] = {}
    whole: dict[tuple[str, str], float] = {}
    for owner in owners:
        for stack, cost in owner.stacks.items():
            for key in {(frame.file, frame.function) for frame in stack}:
                whole[key] = whole.get(key, 0.0) + cost.seconds
            last = (stack[-1].file, stack[-1].function)
            own[last] = own.get(last, 0.0) + cost.seconds
    found = [Function(file, name, own.get((file, name), 0.0), seconds) for (file, name), seconds in whole.items()]
    return sorted(found, key=lambda each: (-each.own, -each.whole, each.file, each.name))


def heaviest(owner: Owner) -> list[tuple[Stack, Cost]]:
    return sorted(owner.stacks.items(), key=lambda item: -item[1].seconds)
