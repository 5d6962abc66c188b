"""The simulations that the benchmark of the one queue compares with agree with the formulas."""

from __future__ import annotations

import statistics

import pytest

from benches.one_queue import theory

SERVICE = 0.020
REQUESTS = 100_000


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7])
def test_one_queue_is_erlang_c(load: float) -> None:
    # So few requests leave some percents to chance.
    waits = theory.one_queue(theory.poisson(load, 4, SERVICE, REQUESTS * SERVICE / 4 / load, seed=2), 4)
    assert statistics.fmean(waits) == pytest.approx(theory.mean_wait(4, load, SERVICE), rel=0.1)
    share_waiting = sum(wait > 0 for wait in waits) / len(waits)
    assert share_waiting == pytest.approx(theory.erlang_c(4, load), rel=0.1)
    p99 = theory.quantile(sorted(waits), 0.99)
    assert p99 == pytest.approx(theory.wait_quantile(4, load, SERVICE, 0.99), rel=0.1)


def test_a_queue_each_is_m_m_1() -> None:
    waits = theory.queue_each(theory.poisson(0.5, 4, SERVICE, REQUESTS * SERVICE / 2, seed=2), 4, seed=1)
    assert statistics.fmean(waits) == pytest.approx(theory.mean_wait(1, 0.5, SERVICE), rel=0.05)


def test_erlang_c_as_printed_in_tables() -> None:
    assert theory.erlang_c(1, 0.5) == pytest.approx(0.5)
    assert theory.erlang_c(4, 0.5) == pytest.approx(4 / 23)
    assert theory.erlang_c(5, 0.8) == pytest.approx(0.5541, abs=1e-4)


def test_a_trace_by_hand() -> None:
    trace = theory.Trace([0.0, 1.0, 2.0, 3.0], [10.0, 10.0, 1.0, 1.0])
    assert theory.one_queue(trace, 2) == [0.0, 0.0, 8.0, 8.0]
    assert theory.one_queue(trace, 1) == [0.0, 9.0, 18.0, 18.0]
    assert theory.queue_each(trace, 1, seed=1) == theory.one_queue(trace, 1)


def test_the_same_seed_is_the_same_trace() -> None:
    assert theory.poisson(0.5, 4, SERVICE, 10, seed=4) == theory.poisson(0.5, 4, SERVICE, 10, seed=4)
    assert theory.poisson(0.5, 4, SERVICE, 10, seed=4) != theory.poisson(0.5, 4, SERVICE, 10, seed=5)


def test_quantiles_and_tails() -> None:
    assert theory.quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert theory.quantile([1.0, 2.0, 3.0, 4.0], 0.999) == 4.0
    tail = theory.tail([float(number) for number in range(1000)])
    assert tail[0] == (0.0, 1.0)
    assert tail[-1] == (999.0, 0.001)
