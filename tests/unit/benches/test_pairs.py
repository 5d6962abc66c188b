"""What pairs of turns say about a change."""

from __future__ import annotations

from benches.versions.pairs import Pairs, Turn


def pairs(*ratios: float) -> Pairs:
    """Turns in which the base's cost wanders as a busy machine's does, and this version's is so many times as much."""
    costs = [10.0 + number % 3 for number in range(len(ratios))]
    return Pairs(
        [Turn(100, cost) for cost in costs],
        [Turn(100, cost * ratio) for cost, ratio in zip(costs, ratios, strict=True)],
        0,
        0,
    )


def test_the_ratio_is_that_of_the_pairs_and_not_of_the_sums() -> None:
    assert abs(pairs(1.0, 1.02, 1.04).ratio() - 1.02) < 1e-9


def test_one_disturbed_turn_moves_neither_the_ratio_nor_the_interval_far() -> None:
    found = pairs(*[1.0] * 11, 9.0)
    assert found.ratio() == 1.0
    assert found.interval()[1] < 1.001


def test_a_change_that_costs_two_percent_in_every_pair_is_certain() -> None:
    low, high = pairs(*[1.02] * 12).interval()
    assert 1.019 < low <= high < 1.021


def test_few_pairs_are_never_certain_of_more_than_they_have_seen() -> None:
    assert pairs(0.9, 1.3).interval() == pairs(1.3, 0.9).interval()
    low, high = pairs(0.9, 1.3).interval()
    assert low < 1.0 < high
