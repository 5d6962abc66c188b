"""The tables of the simulated fleet, and targets by Erlang's formula."""

from __future__ import annotations

import math
from typing import Any

import pytest

from benches.fleet import tables


def row(policy: str, inside: str, load: float, mean: float, *, grows: bool = False) -> dict[str, Any]:
    return {"policy": policy, "inside": inside, "load": load, "mean": mean, "p99": 10 * mean, "grows": grows}


ROWS = [
    row("Random", "OneQueue", 0.7, 0.5),
    row("Random", "QueueEach", 0.7, 47.0),
    row("LeastConnections", "QueueEach", 0.7, 40.0),
    row("Random", "OneQueue", 0.95, 20.0),
    row("Random", "QueueEach", 0.95, 380.0),
    row("LeastConnections", "QueueEach", 0.95, 300.0),
]


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_waits_stand_beside_theory() -> None:
    found = {(line[0], line[1]): line[2:] for line in cells(tables.waits(ROWS))}
    assert found["16 queues a host", "random, theory (M/M/1)"] == ["47", "380"]
    assert found["16 queues a host", "random"] == ["47 / 470", "380 / 3800"]
    assert found["one queue a host", "random, theory (M/M/16)"] == ["0.5", "20"]


def test_the_claim_compares_with_the_best_of_many_queues() -> None:
    assert "shorter by 80 times at 70% and 15 times at 95%." in tables.claim(ROWS)


def test_waits_that_have_not_settled_have_no_figure() -> None:
    line = cells(tables.slow([row("RoundRobin", "OneQueue", 0.7, 900.0, grows=True)]))[-1]
    assert line == ["round robin", "grow"]


@pytest.mark.parametrize(("slots", "expected"), [(2, 0.17), (4, 0.42), (8, 0.64), (16, 0.79), (32, 0.88), (64, 0.94)])
def test_targets_leave_one_wait_in_a_hundred_longer_than_a_call(slots: int, expected: float) -> None:
    found = tables.target(slots)
    assert found == pytest.approx(expected, abs=0.01)
    waiting = tables.erlang_c(slots, found) * math.exp(-slots * (1 - found))
    assert waiting == pytest.approx(0.01, rel=1e-3)
