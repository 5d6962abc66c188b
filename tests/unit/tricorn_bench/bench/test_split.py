"""Where the time went, from what the server says at /metrics."""

from __future__ import annotations

import pytest
from tricorn_bench.bench import split


def said(count: int, total: float, queue: float, application: float, gil: float) -> str:
    seconds = dict(zip(split.FAMILIES, (total, queue, application, gil), strict=True))
    lines = []
    for part, family in split.FAMILIES.items():
        lines += [
            f"# HELP tricorn_{family} What it is.",
            f"# TYPE tricorn_{family} histogram",
            f'tricorn_{family}_bucket{{le="+Inf"}} {count}',
            f"tricorn_{family}_sum {seconds[part]}",
            f"tricorn_{family}_count {count}",
        ]
    return "\n".join([*lines, "tricorn_connections 3", ""])


def test_only_requests_between_two_readings_count() -> None:
    before = split.sums(said(100, 2.0, 1.0, 0.5, 0.25))
    after = split.sums(said(150, 2.0 + 0.5, 1.0 + 0.1, 0.5 + 0.3, 0.25 + 0.05))
    parts = split.between(before, after)
    assert parts == pytest.approx({"queue": 0.002, "application": 0.006, "rest": 0.002, "gil": 0.001})


def test_without_requests_or_without_readings_there_is_nothing_to_tell() -> None:
    sums = split.sums(said(10, 1.0, 0.5, 0.25, 0.0))
    assert split.between(sums, sums) is None
    assert split.between(None, sums) is None
    assert split.read(None) is None


def test_a_server_that_tells_less_tells_nothing() -> None:
    text = said(10, 1.0, 0.5, 0.25, 0.0)
    assert split.sums(text.replace("gil_wait", "other")) is None
    assert split.sums("") is None
