"""Measures the best predictions beside today's configuration, in turns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tricorn.record import replace
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.measure import Bench, measure
from tricorn_bench.bench.trial import Stage, Trial
from tricorn_bench.tune import model
from tricorn_bench.tune.calibrate import Calibration
from tricorn_bench.tune.model import IN_ALL, NEARLY, ROOM_MEASURED, Kind, Limits, Prediction
from tricorn_bench.tune.verdict import LOADS, Finalist, cells_to_rounds

FINALISTS = 3
LEAST = 64
"""Requests at once at least, so that fast applications are never without one."""
SOON = 4.0
"""Seconds after the end of a load within which a queue is answered: the generator waits for five."""


def finalists(found: Calibration, limits: Limits) -> list[Prediction]:
    """Returns the best prediction of each class, highest rates first. Raises BenchError if limits allow none."""
    best = [one for costs in found.costs.values() if (one := model.best(model.candidates(costs, limits)))]
    if not best:
        raise BenchError(
            "The limits do not allow a single worker of any class. "
            + "; ".join(
                f"{name} needs {(costs.base + costs.worker) / 2**20:.0f} MiB"
                + (f" and {costs.connections} database connections" if costs.connections else "")
                for name, costs in found.costs.items()
            )
        )
    return sorted(best, key=lambda one: (-one.rate, one.memory))[:FINALISTS]


def refined(found: Calibration, limits: Limits, measured: Sequence[Finalist]) -> Prediction | None:
    """Returns another configuration to measure, now that the finalists were; None if there is no better one.

    One worker, if it served more by itself: several share the processors, and each switch between them has a cost.
    Otherwise as many workers as fit, if the fastest finalist exceeded the memory limit, or left room for more workers.
    """
    modelled = [(one, one.prediction) for one in measured if one.prediction is not None]
    if not modelled:
        return None
    fastest, prediction = max(modelled, key=lambda pair: pair[0].rate)
    configuration, limit = prediction.configuration, limits.memory
    costs = found.costs[configuration.worker_class or "sync"]
    other: Prediction | None = None
    if configuration.workers > 1 and model.worker_rate(costs, prediction.threads) > fastest.rate:
        other = model.predict(costs, limits, 1, prediction.threads)
    elif limit is not None:
        each = max(1, (fastest.memory - costs.base) // configuration.workers)
        other = model.best(model.candidates(replace(costs, worker=each, room=ROOM_MEASURED), limits))
        if other is not None and fastest.memory <= limit and other.rate * NEARLY <= prediction.rate:
            return None
    known = {Configuration.parse(one.name).normalized for one in measured}
    return other if other is not None and other.configuration.normalized not in known else None


def connections(found: Calibration, one: Configuration) -> int:
    """Returns how many requests at once saturate a configuration."""
    costs = found.costs.get(one.worker_class or "sync")
    if costs is not None and costs.kind is Kind.LOOP:
        return max(LEAST, min(IN_ALL, one.workers * costs.at_once))
    # As many as there are slots, and as many again that wait; more of them only if they are answered soon.
    slots = one.workers * one.threads
    soon = LEAST if costs is None else slots * (1 + SOON / costs.alone)
    return max(2 * slots, min(LEAST, math.floor(soon)))


def _configuration(one: Prediction | Configuration) -> Configuration:
    return one.configuration if isinstance(one, Prediction) else one


def compare(
    bench: Bench, found: Calibration, chosen: Sequence[Prediction | Configuration], seconds: float
) -> list[Finalist]:
    """Measures them under full load, then at parts of it, each once: the first of equal ones. Raises BenchError."""
    once: dict[Configuration, Prediction | Configuration] = {}
    for each in chosen:
        once.setdefault(_configuration(each).normalized, each)
    predictions = {_configuration(each).name: each if isinstance(each, Prediction) else None for each in once.values()}
    configurations = {one.name: one for one in map(_configuration, once.values())}
    # Requests that wait for a second need some seconds to fill every slot.
    longest = max(costs.alone for costs in found.costs.values())
    most = max(connections(found, one) for one in configurations.values())

    def trial(one: Configuration) -> Trial:
        at_once = most if bench.swarm is not None else connections(found, one)
        full = Stage(seconds=max(seconds, 4 * longest), connections=at_once, at=1.0)
        prepared = Stage(seconds=max(1.0, 2 * longest), connections=at_once, kept=False)
        parts = tuple(replace(full, share=load, at=load) for load in LOADS)
        if bench.swarm is not None:  # users have no rate of their own
            parts = tuple(replace(full, connections=max(1, round(load * at_once)), at=load) for load in LOADS)
        return Trial(one, (prepared, full, *parts), one.name)

    measured = measure(bench, [trial(one) for one in configurations.values()])
    return [
        Finalist(name, predictions[name], rounds)
        for name in configurations
        if 1.0 in (rounds := cells_to_rounds(measured.cells, name))
    ]
