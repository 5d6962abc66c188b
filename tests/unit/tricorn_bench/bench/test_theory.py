"""M/M/W against what is known of it."""

from __future__ import annotations

import math
import random

import pytest
from tricorn_bench.bench import theory


def test_one_server_waits_as_often_as_it_is_busy() -> None:
    assert theory.erlang_c(1, 0.7) == pytest.approx(0.7)


def test_with_one_server_latency_is_exponential() -> None:
    """M/M/1: the sojourn time has the rate mu - lambda."""
    assert theory.latency_quantile(1, 0.5, 0.02, 0.99) == pytest.approx(math.log(100) * 0.02 / 0.5, rel=1e-6)


def test_without_load_latency_is_the_service_time() -> None:
    assert theory.latency_quantile(8, 1e-9, 0.02, 0.5) == pytest.approx(math.log(2) * 0.02, rel=1e-4)


def test_equal_rates_of_wait_and_service_are_no_division_by_zero() -> None:
    near, exact, beyond = (theory.beyond(2, load, 1.0, 2.0) for load in (0.4999, 0.5, 0.5001))
    assert near < exact < beyond


def test_it_agrees_with_a_simulation() -> None:
    draw, servers, load, service = random.Random(4), 4, 0.7, 1.0
    free, now, latencies = [0.0] * servers, 0.0, []
    for _ in range(60_000):
        now += draw.expovariate(load * servers / service)
        begin = max(now, min(free))
        free[free.index(min(free))] = end = begin + draw.expovariate(1 / service)
        latencies.append(end - now)
    latencies.sort()
    for share in (0.5, 0.95):
        simulated = latencies[int(share * len(latencies))]
        assert theory.latency_quantile(servers, load, service, share) == pytest.approx(simulated, rel=0.05)
