"""The tables of a run: of the page of the run, and of docs/how-it-works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tricorn_bench.bench.report.layout import markdown
from tricorn_bench.bench.theory import erlang_c, mean_wait

SERVICE = 20
"""Milliseconds that a request takes in the tables of waits, exponential with this mean."""
SLOTS = 16

Row = Mapping[str, Any]

POLICIES = {
    "Random": "random",
    "RoundRobin": "round robin",
    "PowerOfTwo": "the better of two",
    "LeastConnections": "fewest connections",
    "BySpeed": "random, by reported speed",
    "ByIdleness": "random, by reported idleness",
    "PowerOfTwoBySpeed": "the better of two, drawn by reported speed",
    "PowerOfTwoReported": "the better of two, by the load that their last responses reported",
}
METRICS = {
    "Cpu": "processor time, of a request of 1",
    "BusyShare": "busy share of the slots",
    "RunningAndWaiting": "requests that run and wait",
    "Demand": "**demand**",
    "QueueTime": "95th percentile of the queue time, 50 ms",
    "QueueTimeUpBusyShareDown": "queue time, or busy share if that asks for more",
}
HOURS = {
    "Crowd": "Five times the clients within a minute, for 25 minutes",
    "SlowCalls": "Calls take 2.5 times as long, for 25 minutes",
    "Sine": "From one to five times the clients and back, within the hour",
}
SIZES = (2, 4, 8, 16, 32, 64)
RARE = 0.01


def page(rows: Mapping[str, Sequence[Row]]) -> str:
    parts = ["## Waits", "", waits(rows["waits"]), "", claim(rows["waits"]), ""]
    parts += ["## A tenth of the hosts at half speed", "", slow(rows["slow"]), ""]
    for hour, title in HOURS.items():
        parts += [f"## {title}", "", scale(rows["scale"], hour), ""]
    return "\n".join([*parts, "## Targets", "", targets()])


def waits(rows: Sequence[Row]) -> str:
    """Milliseconds, mean / 99th percentile, and what theory says where it has a formula."""
    loads = sorted({row["load"] for row in rows})
    body = []
    for inside, name in (("OneQueue", "one queue a host"), ("QueueEach", f"{SLOTS} queues a host")):
        servers = SLOTS if inside == "OneQueue" else 1
        theory = [f"{_ms(mean_wait(servers, load, SERVICE))}" for load in loads]
        body.append([name, f"random, theory (M/M/{servers})", *theory])
        for policy, label in POLICIES.items():
            found = {row["load"]: row for row in rows if (row["policy"], row["inside"]) == (policy, inside)}
            if found:
                body.append([name, label, *(_wait(found[load]) for load in loads)])
    return markdown(["inside a host", "between hosts", *(f"{load:.0%}" for load in loads)], body)


def claim(rows: Sequence[Row]) -> str:
    """How much shorter waits are with one queue a host and random choice than with many queues and the best choice."""
    factors = []
    for load in sorted({row["load"] for row in rows}):
        of = {(row["inside"], row["policy"]): row["mean"] for row in rows if row["load"] == load}
        best = min(mean for (inside, _), mean in of.items() if inside == "QueueEach")
        factors.append(f"{best / of['OneQueue', 'Random']:.0f} times at {load:.0%}")
    return (
        "Random choice of a host with one queue, beside the best choice of a host with a queue for each worker: mean "
        f"waits are shorter by {', '.join(factors[:-1])} and {factors[-1]}."
    )


def slow(rows: Sequence[Row]) -> str:
    loads = sorted({row["load"] for row in rows})
    found = {(row["policy"], row["load"]): row for row in rows}
    body = [
        [label, *(_wait(found[policy, load]) for load in loads)]
        for policy, label in POLICIES.items()
        if (policy, loads[0]) in found
    ]
    return markdown(["between hosts", *(f"{load:.0%}" for load in loads)], body)


def scale(rows: Sequence[Row], hour: str) -> str:
    header = ["metric", "503", "waited > 250 ms", "pod-hours", "most pods", "turns"]
    body = []
    for row in rows:
        if row["hour"] == hour:
            shares = [f"{row['shed']:.1%}", f"{row['late']:.1%}"]
            body.append(
                [METRICS[row["metric"]], *shares, f"{row['pod_hours']:.1f}", str(row["most"]), str(row["turns"])]
            )
    return markdown(header, body)


def target(slots: int) -> float:
    """The load at which one request in a hundred waits for longer than a call takes, by Erlang's formula."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _waits_long(slots, middle) < RARE else (low, middle)
    return low


def _waits_long(slots: int, load: float) -> float:
    from math import exp

    return erlang_c(slots, load) * exp(-slots * (1 - load))


def targets() -> str:
    body = [[str(slots), f"{target(slots):.2f}", f"{target(slots) * 0.9:.2f}"] for slots in SIZES]
    return markdown(["requests at once in a pod", "load with 1 % of long waits", "target"], body)


def _wait(row: Row) -> str:
    return "grow" if row["grows"] else f"{_ms(row['mean'])} / {_ms(row['p99'])}"


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
