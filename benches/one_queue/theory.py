"""What queueing theory says: exact simulations of a trace, and the formulas for its infinite length.

M/M/W is one queue for all W servers. W x M/M/1 is a queue for each, arrivals going to one at random: what workers are
that keep the connections they once accepted.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from tricorn_bench.bench.theory import erlang_c, mean_wait, wait_quantile

__all__ = ["Trace", "erlang_c", "mean_wait", "one_queue", "poisson", "quantile", "queue_each", "tail", "wait_quantile"]


class Trace(NamedTuple):
    """Seconds."""

    arrivals: list[float]
    services: list[float]


def poisson(load: float, servers: int, mean_service: float, seconds: float, seed: int) -> Trace:
    """Poisson arrivals at `load` of the capacity, with exponential service times in whole microseconds."""
    random_of = random.Random(f"{seed} {load}")
    rate = load * servers / mean_service
    arrivals, services = [], []
    now = random_of.expovariate(rate)
    while now < seconds:
        arrivals.append(now)
        services.append(max(1, round(random_of.expovariate(1e-6 / mean_service))) / 1e6)
        now += random_of.expovariate(rate)
    return Trace(arrivals, services)


def one_queue(trace: Trace, servers: int) -> list[float]:
    """The wait of each request before its service begins, first come first served by the server that is free first."""
    free_at = [0.0] * servers
    waits = []
    for arrival, service in zip(trace.arrivals, trace.services, strict=True):
        begin = max(arrival, free_at[0])
        heapq.heapreplace(free_at, begin + service)
        waits.append(begin - arrival)
    return waits


def queue_each(trace: Trace, servers: int, seed: int) -> list[float]:
    """The same with a queue per server."""
    random_of = random.Random(seed)
    free_at = [0.0] * servers
    waits = []
    for arrival, service in zip(trace.arrivals, trace.services, strict=True):
        server = random_of.randrange(servers)
        begin = max(arrival, free_at[server])
        free_at[server] = begin + service
        waits.append(begin - arrival)
    return waits


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that `share` of them do not exceed."""
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def tail(waits: Sequence[float], points: int = 160) -> list[tuple[float, float]]:
    """(wait, share of the requests that wait longer), thinned to points evenly spaced on a logarithmic share."""
    ordered = sorted(waits)
    count = len(ordered)
    ranks = {count - max(1, round(count ** (1 - step / points))) for step in range(points + 1)}
    return [(ordered[rank], (count - rank) / count) for rank in sorted(ranks)]
