"""How many requests at once show the limit of one worker."""

from __future__ import annotations

from typing import Any

import pytest
from tricorn_bench.tune import calibrate

from .test_verdict import one_round


def a_round(rate: float, seconds: float, cpu: float) -> Any:
    return one_round(rate, 3 * seconds, cpu=cpu)


ALONE = a_round(20, 0.05, 0.0005)


def test_sync_has_one() -> None:
    assert calibrate.at_once("sync", ALONE) == 1


def test_threads_until_a_processor_is_busy() -> None:
    """1.5 x 50 / 0.5 = 150, and 128 threads at most."""
    assert calibrate.at_once("gthread", ALONE) == 128
    assert calibrate.at_once("gthread", a_round(20, 0.05, 0.005)) == 16


@pytest.mark.parametrize(
    ("rate", "wanted"),
    [
        (16 / 0.35, 32),  # each of the 16 holds the loop for 20 ms
        (16 / 0.05, 1000),  # none does
    ],
)
def test_loops_by_the_seconds_in_which_requests_hold_them(rate: float, wanted: int) -> None:
    few = a_round(rate, 16 / rate, 0.0001)
    assert calibrate.at_once("asgi", ALONE, few) == wanted


def test_loops_by_their_computing_if_that_is_longer() -> None:
    few = a_round(16 / 0.05, 0.05, 0.004)
    assert calibrate.at_once("gevent", ALONE, few) == pytest.approx(125, abs=1)


class TestRate:
    def test_the_end_of_a_closed_load_does_not_count(self) -> None:
        """Of 64 requests under way at the end, those of the longest queue took 0.6 s."""
        one = a_round(664, 0.05, 0.001)
        one["load"] |= {"seconds": 1.6, "window": {"seconds": 1.0, "answered": 600}}
        assert calibrate.rate_of(one) == 600

    def test_waves_count_to_their_end(self) -> None:
        """Three waves of 100 requests, of 0.8 s each: the third one was under way after two seconds."""
        one = a_round(300, 0.8, 0.001)
        one["load"] |= {"seconds": 2.4, "window": {"seconds": 2.0, "answered": 200}}
        assert calibrate.rate_of(one) == 125
