"""What the benchmark of overloads makes of outcomes."""

from __future__ import annotations

import pytest
from tricorn_bench.load import Sample

from benches.overload import judge

PHASES = judge.Phases(1.0, 2.0, 2.0)


def outcome(due: float, latency: float, ended: int | str = 200) -> Sample:
    return Sample(due, due, due, due, due, due + latency, ended, held=False, body="")


def quiet(begin: float, end: float) -> list[Sample]:
    return [outcome(begin + number * 0.1, 0.02) for number in range(round((end - begin) * 10))]


def test_an_overload_as_promised() -> None:
    during = [
        outcome(1 + number / 100, 0.5 if number % 2 else 0.001, 200 if number % 2 else 503) for number in range(200)
    ]
    outcomes = [*quiet(0, 1), *during, outcome(3.05, 0.3), outcome(3.1, 0.25), *quiet(3.2, 5)]
    result = judge.judge(outcomes, PHASES, judge.Promised(37.5, 1.02))
    assert result["served/s"] == 37.5
    assert (result["served"], result["refused"], result["other"]) == (100, 100, 0)
    assert result["recovery s"] == pytest.approx(0.2)
    assert result["not kept"] == "–"


def test_who_gave_up_was_not_served_and_a_standing_queue_is_no_recovery() -> None:
    during = [outcome(1 + number / 100, 3.0, judge.GAVE_UP) for number in range(200)]
    outcomes = [*quiet(0, 1), *during, *[outcome(3 + number / 10, 1.0) for number in range(20)]]
    result = judge.judge(outcomes, PHASES, judge.Promised(50, 1.02))
    assert (result["served/s"], result["gave up"]) == (0, 200)
    assert result["recovery s"] is None
    assert result["not kept"].count(";") == 4


def test_the_course_has_a_point_for_every_half_second() -> None:
    curve = judge.curve([outcome(0.1, 0.02), outcome(0.6, 0.001, 503)], PHASES)
    assert len(curve) == 10
    assert curve[0] == {
        "at": 0.25,
        "good_per_second": 2.0,
        "gave_up_per_second": 0.0,
        "admitted_p99_ms": pytest.approx(20),
        "refused_p99_ms": None,
    }
    assert curve[1]["refused_p99_ms"] == pytest.approx(1)
