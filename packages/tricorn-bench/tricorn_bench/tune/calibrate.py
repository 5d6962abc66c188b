"""Measures one worker of each class: a request alone, then as many at once as the class takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tricorn.record import Record, replace
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.measure import Bench, Measured, measure
from tricorn_bench.bench.result import Cell, Round
from tricorn_bench.bench.trial import Stage, Trial
from tricorn_bench.tune.model import KINDS, THREADS, Costs, Kind, saturating

LEAST_AT_ONCE = 256
"""Requests at once that a loop is given at least: they cost it little, and show what it reaches."""
MOST_AT_ONCE = 1_000
"""Requests at once in a worker: the default of `worker_connections`."""
ALONE, SATURATED = 1.0, 2.0
"""Seconds of load."""


class Calibration(Record):
    costs: Mapping[str, Costs]
    """Costs by worker class."""
    absent: Mapping[str, str]
    """Reasons why a configuration was not measured, by its name."""


def calibrate(bench: Bench, classes: Sequence[Configuration]) -> Calibration:
    """Raises BenchError if the application fails, or no class can run it."""
    once = replace(bench, rounds=1)
    first = Stage(seconds=ALONE, connections=1, at=1.0)
    by_itself = measure(once, [Trial(one, (first,), one.name) for one in classes])
    alone = _by_class(by_itself)
    trials = [_under_load(one, alone[one.worker_class]) for one in classes if one.worker_class in alone]
    found = measure(once, trials)
    under_load = _by_class(found)
    costs = {name: _costs(name, alone[name], under_load[name]) for name in under_load}
    if not costs:
        raise BenchError(f"No class could be measured under load: {'; '.join(found.absent.values())}")
    return Calibration(costs, {**by_itself.absent, **found.absent})


def at_once(worker_class: str, alone: float, cpu: float) -> int:
    """Returns how many requests a worker of the class should have at once to show its limit."""
    match KINDS[worker_class]:
        case Kind.ONE:
            return 1
        case Kind.THREADS:
            wanted = saturating(alone, cpu, THREADS[-1])
            return next(threads for threads in THREADS if threads >= wanted)
        case Kind.LOOP:
            return max(LEAST_AT_ONCE, saturating(alone, cpu, MOST_AT_ONCE))


def _under_load(one: Configuration, alone: Round) -> Trial:
    name = one.worker_class
    assert name is not None
    requests = at_once(name, latency(alone), cpu_of(alone))
    if KINDS[name] is Kind.THREADS:
        one = Configuration.parse(f"{name} --threads {requests}")
    # Some more wait, so that the worker is never without a request.
    stage = Stage(seconds=max(SATURATED, 4 * latency(alone)), connections=requests + max(8, requests // 4), at=2.0)
    return Trial(one, (stage,), one.name)


def _by_class(found: Measured) -> dict[str, Round]:
    return {_class_of(cell): cell["rounds"][-1] for cell in found.cells}


def _class_of(cell: Cell) -> str:
    name = Configuration.parse(cell["configuration"]).worker_class
    assert name is not None
    return name


def _costs(name: str, alone: Round, loaded: Round) -> Costs:
    first, *workers = loaded["processes"]
    own = max((one["uss"] for one in workers), default=first["uss"])
    return Costs(
        worker_class=name,
        alone=latency(alone),
        cpu=cpu_of(loaded),
        rate=rate_of(loaded),
        at_once=at_once(name, latency(alone), cpu_of(alone)),
        base=memory_of(loaded) - own,
        worker=own,
        connections=loaded["database"],
    )


def latency(one: Round) -> float:
    """Mean seconds of a request."""
    return one["load"]["latency"]["mean"]


def rate_of(one: Round) -> float:
    """Answers a second."""
    return one["load"]["answered"] / one["load"]["seconds"]


def cpu_of(one: Round) -> float:
    """CPU seconds of the server for each answer."""
    return one["cpu"]["total"] / one["load"]["answered"]


def memory_of(one: Round) -> int:
    """PSS of all processes in bytes."""
    return sum(process["pss"] for process in one["processes"])
