"""M/M/W: one queue for W servers, Poisson arrivals, exponential service times (Erlang, 1917). Closed forms."""

from __future__ import annotations

import math


def erlang_c(servers: int, load: float) -> float:
    """The probability that a request has to wait at all."""
    offered = servers * load
    term, below = 1.0, 0.0
    for number in range(servers):
        below += term
        term *= offered / (number + 1)
    waiting = term / (1 - load)
    return waiting / (below + waiting)


def mean_wait(servers: int, load: float, mean_service: float) -> float:
    return erlang_c(servers, load) * mean_service / (servers * (1 - load))


def wait_quantile(servers: int, load: float, mean_service: float, quantile: float) -> float:
    beyond = erlang_c(servers, load) / (1 - quantile)
    return max(0.0, math.log(beyond) * mean_service / (servers * (1 - load)))


def beyond(servers: int, load: float, mean_service: float, seconds: float) -> float:
    """The probability that a request takes longer, its wait and its service together."""
    service = 1 / mean_service
    free = servers * (1 - load) * service  # what the queue drains by, beyond what comes
    waits = erlang_c(servers, load)
    if math.isclose(service, free, rel_tol=1e-9):  # wait and service have the same rate: an Erlang-2 in place of two
        return math.exp(-service * seconds) * (1 + waits * service * seconds)
    excess = waits * service / (free - service)
    return (1 + excess) * math.exp(-service * seconds) - excess * math.exp(-free * seconds)


def latency_quantile(servers: int, load: float, mean_service: float, quantile: float) -> float:
    """Seconds that a share of the requests does not exceed."""
    low, high = 0.0, mean_service
    while beyond(servers, load, mean_service, high) > 1 - quantile:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if beyond(servers, load, mean_service, middle) > 1 - quantile:
            low = middle
        else:
            high = middle
    return high
