"""What figures say of rounds whose answers are known."""

from __future__ import annotations

import pytest
from tricorn_bench.bench.figures import BY_KEY, FIGURES

from tests.unit.tricorn_bench.bench.made import a_round


def read(key: str, *rounds: object) -> float:
    value = BY_KEY[key].read(list(rounds))  # type: ignore[arg-type]
    assert value is not None
    return value


def test_percentiles_of_several_rounds_are_those_of_all_their_requests() -> None:
    """Not the mean of the rounds' percentiles: 1.0 and 2.0 would have given 1.5 ms."""
    quick, slow = a_round((1000,) * 900), a_round((2000,) * 100)
    assert read("p50", quick, slow) == pytest.approx(1.0)
    assert read("p90", quick, slow) == pytest.approx(1.0)
    assert read("p95", quick, slow) == pytest.approx(2.0)
    assert read("max", quick, slow) == pytest.approx(2.0)


def test_answers_that_tell_of_a_failure_are_no_throughput() -> None:
    failing = a_round((1000,) * 100, seconds=2.0)
    failing["load"]["statuses"] = {"200": 60, "304": 10, "404": 10, "503": 20}
    failing["load"]["errors"] = {"timeout": 5}
    assert read("rate", failing) == 35.0
    assert read("errors", failing) == 35.0


def test_cpu_is_of_all_rounds_by_all_their_requests() -> None:
    assert read("cpu", a_round((1000,) * 100, cpu=0.1), a_round((1000,) * 300, cpu=0.1)) == pytest.approx(500.0)
    assert read("user", a_round(cpu=0.1)) + read("system", a_round(cpu=0.1)) == pytest.approx(
        read("cpu", a_round(cpu=0.1))
    )
    assert read("cores", a_round(cpu=0.1, seconds=0.2)) == pytest.approx(0.5)


def test_memory_is_the_sum_over_processes_and_workers_are_all_but_the_first() -> None:
    assert read("pss", a_round(pss=20)) == pytest.approx(20)
    assert read("uss", a_round()) == pytest.approx(3)
    assert read("rss", a_round()) == pytest.approx(70)
    assert read("worker", a_round(pss=20)) == pytest.approx(15)
    assert read("threads", a_round()) == 6


def test_a_round_without_an_answer_has_no_latency() -> None:
    silent = a_round()
    silent["load"].update(answered=0, latency={})
    assert BY_KEY["p99"].read([silent]) is None
    assert BY_KEY["max"].read([silent]) is None
    assert BY_KEY["p99"].per_round([silent, a_round()]) == [1.0]


def test_a_figure_that_was_not_read_is_shown_as_missing() -> None:
    assert BY_KEY["database"].read([a_round()]) is None
    assert BY_KEY["database"].shown(None) == "–"
    assert read("database", a_round(database=30), a_round(database=101)) == 101


def test_keys_can_be_typed_and_are_unique() -> None:
    assert len(BY_KEY) == len(FIGURES)
    assert all(" " not in key for key in BY_KEY)
