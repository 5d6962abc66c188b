"""Rounds that fit into the time there is."""

from __future__ import annotations

import pytest
from tricorn_bench.bench.budget import Budget


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_rounds_are_as_long_as_asked_for_while_there_is_time() -> None:
    budget = Budget(ends=150.0, around=4.0, clock=Clock())
    assert budget.begin(3, [3.0, 3.0])(3.0) == 3.0
    assert budget.shortest is None


def test_rounds_get_shorter_when_starting_servers_takes_longer_than_expected() -> None:
    clock = Clock()
    budget = Budget(ends=150.0, around=4.0, clock=clock)
    budget.begin(3, [3.0, 3.0])
    clock.now += 26.0
    budget.end(loaded=6.0)  # 20 s went elsewhere; there are 24 s for two more rounds
    shortened = budget.begin(2, [3.0, 3.0])
    assert (shortened(3.0), budget.shortest) == (1.0, 1.0)


def test_all_loads_of_a_round_get_shorter_by_the_same_part() -> None:
    budget = Budget(ends=120.0, around=4.0, clock=Clock())
    shortened = budget.begin(2, [6.0, 2.0, 4.0])  # 6 s of load in each round, for 12
    assert [shortened(seconds) for seconds in (6.0, 4.0)] == [3.0, 2.0]


@pytest.mark.parametrize("seconds", [0.4, 1.0])
def test_bench_budget_of_a_second_at_least(seconds: float) -> None:
    budget = Budget(ends=90.0, around=4.0, clock=Clock())
    shortened = budget.begin(1, [3.0])
    assert shortened(seconds) == seconds
    assert shortened(3.0) == 1.0
