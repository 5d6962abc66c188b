"""Ratios of rounds, and when they are more than noise."""

from __future__ import annotations

import math
import random

import pytest
from tricorn_bench.bench import spread


def test_the_ratio_of_paired_rounds_is_the_geometric_mean_of_theirs() -> None:
    found = spread.ratio([100.0, 200.0, 50.0], [110.0, 220.0, 55.0], paired=True)
    assert found is not None
    assert math.isclose(found.value, 1.1)
    assert math.isclose(found.low, 1.1)
    assert not found.noise


def test_what_disturbs_a_round_disturbs_no_pair() -> None:
    base, other = [100.0, 300.0, 40.0, 90.0], [105.0, 312.0, 42.1, 94.0]
    paired, apart = (spread.ratio(base, other, paired=paired) for paired in (True, False))
    assert paired is not None
    assert apart is not None
    assert not paired.noise
    assert apart.noise


def test_one_round_tells_nothing() -> None:
    found = spread.ratio([100.0], [200.0], paired=True)
    assert found is not None
    assert math.isclose(found.value, 2.0)
    assert found.noise


def test_a_difference_that_cannot_matter_is_noise_however_sure() -> None:
    found = spread.ratio([100.0, 100.0, 100.0], [100.2, 100.2, 100.2], paired=True)
    assert found is not None
    assert found.noise


def test_there_is_no_ratio_to_zero() -> None:
    assert spread.ratio([0.0, 1.0], [1.0, 1.0], paired=True) is None
    assert spread.ratio([], [1.0], paired=False) is None


def test_the_standard_error_is_that_of_the_textbook() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert spread.standard_error(values) == pytest.approx(math.sqrt(2.5 / 5))


def test_servers_that_are_the_same_are_told_apart_once_in_twenty_times() -> None:
    """What the corrections for few rounds are for: with three, the plain bootstrap is wrong one time in four."""
    draw = random.Random(15)
    wrong = 0
    for _ in range(2000):
        base, other = ([math.exp(draw.gauss(0, 0.05)) for _ in range(3)] for _ in range(2))
        found = spread.ratio(base, other, paired=True)
        assert found is not None
        wrong += not found.noise
    assert 70 < wrong < 130, "of 2000, where 100 are expected"
