"""What do the others notice of a request that takes 5 s on one of four workers?

The same trace is run with and without the slow request, at a load at which three workers hardly ever queue, and once
more through the simulation: with a server less for 5 s a little more waiting is inevitable, and only what goes beyond
the simulation of the trace with the slow request is the server's doing. *The same without* is the machine's noise.
"""

from __future__ import annotations

import argparse
import bisect
from collections.abc import Sequence

from benches.harness.servers import Figures, Found
from benches.one_queue import measure, theory
from benches.one_queue.measure import GROUP

SLOW, SLOW_AT, AFTERWARDS = 5.0, 1.0, 2.0
LIMIT_MS = 3.0
"""That another request may at most wait longer than in the simulation."""
TITLE = f"{SLOW:g} s on one of {GROUP} workers, beside {{0.slow_load:g}} % load, seed {{0.seed}}; ms"


def one_round(line: str, found: Found, arguments: argparse.Namespace) -> Figures:
    seconds = SLOW_AT + SLOW + AFTERWARDS
    without = theory.poisson(arguments.slow_load / 100, GROUP, arguments.service, seconds, arguments.seed)
    beside, place = with_slow(without)
    measured_without = waits(line, found, without, arguments)
    measured_with = waits(line, found, beside, arguments)
    del measured_with[place]
    simulated_with = theory.one_queue(beside, GROUP)
    del simulated_with[place]
    longer = worst(measured_with, simulated_with)
    failed = sum(wait is None for wait in (*measured_with, *measured_without))
    return {
        "longest wait": worst(measured_with, [0.0] * len(measured_with)),
        "longer than without": worst(measured_with, measured_without),
        "longer than simulated": longer,
        "the same without": worst(measured_without, theory.one_queue(without, GROUP)),
        "requests": len(measured_with),
        "failed": failed,
        f"within {LIMIT_MS:g} ms?": "yes" if longer <= LIMIT_MS and not failed else "no",
    }


def with_slow(trace: theory.Trace) -> tuple[theory.Trace, int]:
    place = bisect.bisect(trace.arrivals, SLOW_AT)
    columns = [list(column) for column in trace]
    for column, value in zip(columns, (SLOW_AT, SLOW), strict=True):
        column.insert(place, value)
    return theory.Trace(*columns), place


def waits(line: str, found: Found, trace: theory.Trace, arguments: argparse.Namespace) -> list[float | None]:
    """The wait of each request in seconds, None for what was not answered."""
    _, outcomes = measure.run(line, found, trace, arguments)
    return [
        outcome.latency - service if outcome.ended == 200 else None
        for outcome, service in zip(outcomes, trace.services, strict=True)
    ]


def worst(measured: Sequence[float | None], other: Sequence[float | None]) -> float:
    """Milliseconds by which a request waited longer, at most."""
    pairs = zip(measured, other, strict=True)
    return max((a - b) * 1e3 for a, b in pairs if a is not None and b is not None)
