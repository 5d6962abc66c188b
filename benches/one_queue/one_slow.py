"""What do the others notice of a request that takes 5 s on one of four workers?

The same trace is run with and without the slow request, at a load at which three workers hardly ever queue, and once
more through the simulation: with a server less for 5 s a little more waiting is inevitable, and only what goes beyond
the simulation of the trace with the slow request is the server's doing.
"""

from __future__ import annotations

import argparse
import bisect
from typing import Any

from benches.harness import report
from benches.harness.open_loop import Clients
from benches.harness.process import Server, free_port
from benches.one_queue import measure, theory
from benches.one_queue.servers import SERVERS_OF_A_GROUP, Kind

SLOW = 5.0
SLOW_AT = 1.0
AFTERWARDS = 2.0
#: Milliseconds that no other request may wait longer than in the simulation.
LIMIT_MS = 3.0


def measure_kind(kind: Kind, arguments: argparse.Namespace, commands: dict[str, str]) -> dict[str, Any]:
    seconds = SLOW_AT + SLOW + AFTERWARDS
    load = arguments.slow_load / 100
    without = theory.poisson(load, SERVERS_OF_A_GROUP, arguments.service, seconds, arguments.seed)
    beside, place = with_slow(without)
    measured_without = latencies(kind, arguments, commands, without)
    measured_with = latencies(kind, arguments, commands, beside)
    del measured_with[place]
    simulated_without = theory.one_queue(without, SERVERS_OF_A_GROUP)
    simulated_with = theory.one_queue(beside, SERVERS_OF_A_GROUP)
    del simulated_with[place]
    result = {
        "requests": len(measured_with),
        "failed": sum(wait is None for wait in (*measured_with, *measured_without)),
        "longest_wait_ms": worst(measured_with, [0.0] * len(measured_with)),
        "longer_than_without_ms": worst(measured_with, measured_without),
        "longer_than_simulated_ms": worst(measured_with, simulated_with),
        "without_longer_than_simulated_ms": worst(measured_without, simulated_without),
        "beyond_limit": sum(
            wait is not None and (wait - theoretical) * 1e3 > LIMIT_MS
            for wait, theoretical in zip(measured_with, simulated_with, strict=True)
        ),
    }
    print(f"  {kind.name}: {result}", flush=True)
    return result


def with_slow(trace: theory.Trace) -> tuple[theory.Trace, int]:
    place = bisect.bisect(trace.arrivals, SLOW_AT)
    columns = [list(column) for column in trace]
    for column, value in zip(columns, (SLOW_AT, SLOW, 0.5), strict=True):
        column.insert(place, value)
    return theory.Trace(*columns), place


def latencies(
    kind: Kind, arguments: argparse.Namespace, commands: dict[str, str], trace: theory.Trace
) -> list[float | None]:
    """The wait of each request in seconds, None for what was not answered."""
    port = free_port()
    command = kind.command(port)
    commands[kind.name] = report.shown(command, port)
    opening = measure.opening(arguments.connections, arguments.service, SERVERS_OF_A_GROUP, arguments.seed)
    with Server(command, port) as server, Clients(port, arguments.connections) as clients:
        _, outcomes = measure.run(server, trace, clients, opening)
    return [
        outcome.latency - service if outcome.status == 200 else None
        for outcome, service in zip(outcomes, trace.services, strict=True)
    ]


def worst(measured: list[float | None], other: list[float | None] | list[float]) -> float:
    """Milliseconds by which a request waited longer, at most."""
    pairs = zip(measured, other, strict=True)
    return max((a - b) * 1e3 for a, b in pairs if a is not None and b is not None)


def render(data: dict[str, Any], arguments: argparse.Namespace) -> str:
    header = [
        "server",
        *("longest wait ms", "longer than without", "longer than simulated", "the same without", "requests beyond"),
        f"within {LIMIT_MS:g} ms?",
    ]
    columns = (
        *("longest_wait_ms", "longer_than_without_ms"),
        *("longer_than_simulated_ms", "without_longer_than_simulated_ms"),
    )
    rows = []
    for name, result in data.items():
        if "absent" not in result:
            kept = result["longer_than_simulated_ms"] <= LIMIT_MS and not result["failed"]
            figures = [f"{result[column]:.2f}" for column in columns]
            beyond = f"{result['beyond_limit']} of {result['requests']}"
            rows.append([name, *figures, beyond, "yes" if kept else "no"])
    absent = [f"* {name}: {result['absent']}" for name, result in data.items() if "absent" in result]
    text = (
        f"{SLOW:g} s on one of {SERVERS_OF_A_GROUP} workers, beside {arguments.slow_load:g} % load over "
        f"{arguments.connections} connections, seed {arguments.seed}. *longer than simulated*: the most that one of "
        "the other requests waited beyond its wait in the simulation of one queue with the same trace; *the same "
        "without*: that of the run without the slow request, which is the noise of the machine."
    )
    return "\n\n".join([text, report.table(header, rows), *(["\n".join(absent)] if absent else [])])
