"""Reads the costs of requests from a server in production, without any load of its own."""

from __future__ import annotations

import math
from typing import Any, Protocol

from tricorn.record import Record
from tricorn_bench.bench import proc
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.tune.model import GIL_BOUND, KINDS, THREADS, Costs, Kind, Limits, Prediction, predict, worker_rate

LEAST_REQUESTS = 100
SURE, FAIRLY = 10_000, 1_000
"""Requests from which on the means are believed."""
BUSY = 0.7
"""Fraction of its limit that a server should be planned for: beyond it waits grow quickly."""


class Control(Protocol):
    """A connection to the control socket (`tricorn.control.client.Control`)."""

    def ask(self, word: str) -> dict[str, Any]: ...


class Observed(Record):
    """A running server, as it describes itself."""

    application: str
    worker_class: str
    workers: int
    threads: int
    seconds: float
    requests: int
    rate: float
    """Requests a second, averaged since the start of the server."""
    spent: float
    """Seconds that a request spent in the application."""
    cpu: float
    """CPU seconds of the workers for each request."""
    blocked: float
    """Seconds for each request in which a call blocked its thread, or the event loop."""
    memory: int
    """PSS of all processes in bytes."""
    worker: int
    """USS of the largest worker in bytes."""
    connections: int | None
    """Connections to databases that a worker holds."""

    @property
    def confidence(self) -> str:
        return "high" if self.requests >= SURE else "fair" if self.requests >= FAIRLY else "low"


def observe(control: Control) -> Observed:
    """Raises BenchError if there were too few requests, or the class is not one that the model knows."""
    status, stats, rows = control.ask("status"), control.ask("stats"), control.ask("workers")["workers"]
    routes = control.ask("routes").get("routes", [])
    figures = stats["figures"]
    requests = int(figures["requests"])
    if requests < LEAST_REQUESTS:
        raise BenchError(
            f"The server has answered only {requests} requests since its workers started; {LEAST_REQUESTS} are needed. "
            "Try again after more traffic, or measure the application: tricorn tune MODULE:ATTRIBUTE."
        )
    worker_class = str(status["class"])
    if worker_class not in KINDS:
        raise BenchError(f"No model for the worker class {worker_class!r}: expected one of {', '.join(KINDS)}.")
    told = [route for route in routes if route["requests"]]
    counted = sum(route["requests"] for route in told)
    spent = sum(route["seconds"] for route in told) / counted if counted else 0.0
    blocked = "loop_blocked_nanoseconds" if KINDS[worker_class] is Kind.LOOP else "call_blocked_nanoseconds"
    serving = [row for row in rows if row["state"] == "serving"]
    memory, private = _memory(int(status["pid"]), [int(row["pid"]) for row in serving])
    databases = max((int(row["figures"]["databases"]) for row in serving), default=0)
    return Observed(
        application=str(status["app"]),
        worker_class=worker_class,
        workers=int(status["workers"]["target"]),
        threads=max((int(row["threads"]) for row in serving), default=1),
        seconds=float(stats["uptime"]),
        requests=requests,
        rate=requests / max(1e-9, float(stats["uptime"])),
        spent=spent,
        cpu=figures["cpu_nanoseconds"] / 1e9 / requests,
        blocked=figures[blocked] / 1e9 / requests,
        memory=memory,
        worker=private,
        connections=databases or None,
    )


def _memory(arbiter: int, workers: list[int]) -> tuple[int, int]:
    """Returns PSS of all processes, and USS of the largest worker. Raises BenchError if they are not shown."""
    try:
        found = {pid: proc.memory(pid) for pid in (arbiter, *workers)}
    except (*proc.GONE, PermissionError, KeyError):
        raise BenchError(
            "Cannot read the memory of the server's processes. Run this as the server's user, or as root."
        ) from None
    return sum(one.pss for one in found.values()), max((found[pid].private for pid in workers), default=0)


def costs(seen: Observed) -> dict[str, Costs]:
    """Returns what one worker of each class would reach, as far as the figures of the running class tell."""
    alone = max(seen.spent, seen.cpu)
    base = max(0, seen.memory - seen.workers * seen.worker)
    rates = {"sync": (1 / alone, 1)}
    slots = max(2, math.ceil(2 * alone / seen.cpu))
    if KINDS[seen.worker_class] is Kind.LOOP:
        rates = {seen.worker_class: (1 / (seen.cpu + seen.blocked), slots)}
    else:
        rates["gthread"] = (1 / seen.cpu, min(THREADS[-1], slots))
    return {
        name: Costs(name, alone, seen.cpu, rate, slots, base, seen.worker, seen.connections)
        for name, (rate, slots) in rates.items()
    }


def current(seen: Observed, limits: Limits) -> Prediction:
    """Returns what the running configuration is expected to serve at most."""
    return predict(costs(seen)[seen.worker_class], limits, seen.workers, seen.threads)


def advice(seen: Observed, limits: Limits) -> list[str]:
    """Returns sentences for the operator: how far the server is from its limit, and what to change."""
    now = current(seen, limits)
    used = seen.rate / now.rate
    found = [
        f"It served {seen.rate:,.1f} requests/s on average, {used:.0%} of the {now.rate:,.0f} expected at most from "
        f"this configuration; {now.limit}."
    ]
    known = costs(seen)
    match KINDS[seen.worker_class]:
        case Kind.LOOP if seen.blocked > seen.cpu:
            found.append(
                f"Calls block the event loop for {seen.blocked * 1e3:.3g} ms of each request, longer than its CPU "
                "time. `tricorn doctor` shows them. Until they are fixed, more workers help, but not more concurrency."
            )
        case Kind.ONE if seen.spent > 4 * seen.cpu:
            threads = next((n for n in THREADS if n >= seen.spent / seen.cpu), THREADS[-1])
            other = predict(known["gthread"], limits, min(seen.workers, math.ceil(limits.processors)), threads)
            found.append(
                f"A request waits for {1 - seen.cpu / seen.spent:.0%} of its time. {other.configuration.name} is "
                f"expected to serve {other.rate:,.0f} requests/s with {other.memory / 2**20:,.0f} MiB "
                f"({seen.memory / 2**20:,.0f} MiB now), if the application is thread-safe."
            )
        case _ if now.rate * seen.cpu >= GIL_BOUND * limits.processors:
            found.append("The CPUs are the limit: more workers or threads do not help.")
    if used > BUSY:
        one = known[seen.worker_class]
        wanted = math.ceil(seen.rate / BUSY / worker_rate(one, seen.threads))
        if wanted > seen.workers and seen.rate / BUSY <= limits.processors / seen.cpu:
            found.append(f"-w {wanted} would leave {1 - BUSY:.0%} of the capacity free.")
    return found
