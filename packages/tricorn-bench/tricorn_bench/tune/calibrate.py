"""Measures one worker of each class: a request alone, then as many at once as the class takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tricorn.record import Record, replace
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.measure import Bench, Measured, measure
from tricorn_bench.bench.result import Cell, Round
from tricorn_bench.bench.trial import Stage, Trial
from tricorn_bench.tune.model import KINDS, THREADS, Costs, Kind, filling, holding, saturating

FEW = 16
"""Requests at once that show for how long each of them holds the loop."""
MOST_AT_ONCE = 1_000
"""Requests at once in a worker: the default of `worker_connections`."""
MANY = 2_000
"""Position of the full load among a class's stages."""
LONG = 0.5
"""Seconds of a request from which on a queue of eight takes too long."""
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
    by_itself = measure(once, [_first(one) for one in classes])
    alone, few = _by_class(by_itself, 1), _by_class(by_itself, FEW)
    slots = {name: at_once(name, alone[name], few.get(name)) for name in alone}
    trials = [_under_load(one, slots[name], latency(alone[name])) for one in classes if (name := _name(one)) in slots]
    found = measure(once, trials)
    under_load = _by_class(found, MANY)
    costs = {name: _costs(name, slots[name], alone[name], under_load[name]) for name in under_load}
    if not costs:
        raise BenchError(f"No class could be measured under load: {'; '.join(found.absent.values())}")
    return Calibration(costs, {**by_itself.absent, **found.absent})


def at_once(worker_class: str, alone: Round, few: Round | None = None) -> int:
    """Returns how many requests a worker of the class should have at once to show its limit."""
    seconds, cpu = latency(alone), cpu_of(alone)
    match KINDS[worker_class]:
        case Kind.ONE:
            return 1
        case Kind.THREADS:
            wanted = saturating(seconds, cpu, THREADS[-1])
            return next(threads for threads in THREADS if threads >= wanted)
        case Kind.LOOP:
            few = few or alone
            held = max(cpu_of(few), holding(seconds, rate_of(few), FEW))
            return filling(seconds, held, MOST_AT_ONCE)


def _first(one: Configuration) -> Trial:
    stages = [Stage(seconds=ALONE, connections=1, at=1.0)]
    if KINDS[_name(one)] is Kind.LOOP:
        stages.append(Stage(seconds=ALONE, connections=FEW, at=float(FEW)))
    return Trial(one, tuple(stages), one.name)


def _under_load(one: Configuration, requests: int, alone: float) -> Trial:
    kind = KINDS[_name(one)]
    if kind is Kind.THREADS:
        one = Configuration.parse(f"{_name(one)} --threads {requests}")
    # Some more wait, so that the worker is never without a request; a loop takes them, too. They are answered after the
    # load has ended, within the seconds that the generator waits.
    more = 0 if kind is Kind.LOOP else max(8 if alone < LONG else 2, requests // 4)
    prepared = Stage(seconds=max(SATURATED / 4, 2 * alone), connections=requests + more, kept=False)
    load = replace(prepared, seconds=max(SATURATED, 4 * alone), at=float(MANY), kept=True)
    return Trial(one, (prepared, load), one.name)


def _by_class(found: Measured, at: int) -> dict[str, Round]:
    return {_class_of(cell): cell["rounds"][-1] for cell in found.cells if cell["at"] == at}


def _class_of(cell: Cell) -> str:
    return _name(Configuration.parse(cell["configuration"]))


def _name(one: Configuration) -> str:
    name = one.worker_class
    assert name is not None
    return name


def _costs(name: str, slots: int, alone: Round, loaded: Round) -> Costs:
    first, *workers = loaded["processes"]
    own = max((one["uss"] for one in workers), default=first["uss"])
    return Costs(
        worker_class=name,
        alone=latency(alone),
        cpu=cpu_of(loaded),
        rate=rate_of(loaded),
        at_once=slots,
        base=memory_of(loaded) - own,
        worker=own,
        connections=loaded["database"],
        resting=alone["database"] or 0,
    )


def latency(one: Round) -> float:
    """Mean seconds of a request."""
    return one["load"]["latency"]["mean"]


def rate_of(one: Round) -> float:
    """Answers a second.

    The end of a closed load, when only the longest queue is still served, would lower it; a window without the end
    misses the last of the waves in which requests come that all wait equally long. Neither is ever too high.
    """
    load = one["load"]
    whole = load["answered"] / load["seconds"]
    window = load.get("window")
    return max(whole, window["answered"] / window["seconds"]) if window else whole


def cpu_of(one: Round) -> float:
    """CPU seconds of the server for each answer."""
    return one["cpu"]["total"] / one["load"]["answered"]


def memory_of(one: Round) -> int:
    """PSS of all processes in bytes."""
    return sum(process["pss"] for process in one["processes"])
