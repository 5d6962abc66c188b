"""What the benchmarks make of what the load generator says."""

from __future__ import annotations

import pytest
from tricorn.load import Histogram, Result

from benches.harness import load


def figures(**more: object) -> Result:
    latency = {"p50": 0.1, "p90": 0.2, "p99": 0.3, "max": 0.4}
    counted = {"answered": 100, "seconds": 2.0, "latency": latency, "statuses": {"200": 90, "500": 10}}
    rest = {"errors": {"timeout": 3, "closed": 2}, "histogram": Histogram().encode(), "generator": {"cpu_seconds": 0.5}}
    return Result({"schema": "tricorn-load/1", **counted, **rest, **more})


def test_errors_are_bad_answers_and_requests_without_one() -> None:
    seen = load.seen(figures())
    assert (seen.requests, seen.errors) == (100, 15)
    assert (seen.p50_ms, seen.max_ms) == (pytest.approx(100), pytest.approx(400))
    assert seen.per_second == 45.0


def test_a_server_that_answers_nothing_has_no_latency() -> None:
    seen = load.seen(figures(answered=0, latency={}, statuses={}))
    assert (seen.requests, seen.errors, seen.p99_ms, seen.per_second) == (0, 5, 0.0, 0.0)
