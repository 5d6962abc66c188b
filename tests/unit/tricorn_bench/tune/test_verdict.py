from __future__ import annotations

from typing import Any

import pytest
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.tune import verdict
from tricorn_bench.tune.model import Costs, Limits, Prediction
from tricorn_bench.tune.verdict import Finalist, Target

MIB = 2**20


def one_round(rate: float, p99: float, *, cpu: float = 0.001, memory: int = 100 * MIB, failed: int = 0) -> Any:
    answered = int(rate)
    return {
        "load": {
            "seconds": 1.0,
            "answered": answered,
            "latency": {"mean": p99 / 3, "p50": p99 / 4, "p95": p99 / 2, "p99": p99},
            "statuses": {"200": answered - failed, "500": failed},
            "errors": {"timeout": 0},
        },
        "cpu": {"total": cpu * answered, "user": 0.0, "system": 0.0},
        "processes": [{"pid": 1, "name": "", "pss": memory, "uss": memory, "rss": memory, "threads": 1}],
    }


def finalist(name: str, rate: float, tails: tuple[float, float, float] = (0.1, 0.2, 0.9), **more: Any) -> Finalist:
    """`tails`: the 99th percentiles at half of the rate, 70 and 90 percent."""
    rounds = {1.0: [one_round(rate, 2.0, **more) for _ in range(3)]}
    rounds |= {
        load: [one_round(load * rate, tail, **more)] * 3 for load, tail in zip(verdict.LOADS, tails, strict=True)
    }
    prediction = Prediction(Configuration.parse(name), rate, 100 * MIB, None, "")
    return Finalist(Configuration.parse(name).name, prediction, rounds)


class TestTarget:
    @pytest.mark.parametrize(
        ("text", "quantile", "seconds"),
        [("p99 < 200ms", "p99", 0.2), ("p95<1.5s", "p95", 1.5), ("p50 < 900us", "p50", 0.0009)],
    )
    def test_tune_target_conditions(self, text: str, quantile: str, seconds: float) -> None:
        found = Target.parse(text)
        assert (found.quantile, found.seconds) == (quantile, pytest.approx(seconds))

    @pytest.mark.parametrize("text", ["", "p99", "p99 > 1s", "p97 < 1s", "p99 < 1", "p99 < fast", "p99 < 1 s 2"])
    def test_other_tune_targets_are_refused(self, text: str) -> None:
        with pytest.raises(BenchError, match="expected, for example, 'p99 < 200ms'"):
            Target.parse(text)


class TestJudge:
    def test_the_highest_rate_is_the_best(self) -> None:
        found = verdict.judge(
            [finalist("sync -w 9", 90), finalist("gevent", 300)], "tricorn sync -w 9", None, Limits(4.0)
        )
        assert found.best.name == "tricorn gevent"
        assert found.today is not None
        assert found.gain is not None
        assert found.gain.value == pytest.approx(300 / 90)
        assert not found.refusal

    def test_of_equal_rates_the_least_memory_is_the_best(self) -> None:
        small, large = finalist("gthread", 295, memory=80 * MIB), finalist("gevent -w 4", 300, memory=200 * MIB)
        assert verdict.judge([small, large], "", None, Limits(4.0)).best is small

    def test_more_memory_than_allowed_is_not_recommended(self) -> None:
        """However fast it is: predicted to fit, it grew under load."""
        small, large = finalist("gevent", 200, memory=80 * MIB), finalist("sync -w 9", 300, memory=251 * MIB)
        found = verdict.judge([small, large], "", None, Limits(4.0, memory=250 * MIB))
        assert found.best is small
        assert found.ranked[0] is large, "what it served stays in the table"

    def test_all_take_more_memory_than_allowed(self) -> None:
        with pytest.raises(BenchError, match="exceed the memory limit: they use at least 100 MiB"):
            verdict.judge([finalist("gevent", 200)], "", None, Limits(4.0, memory=90 * MIB))

    def test_a_target_counts_the_rate_at_which_it_is_met(self) -> None:
        """The faster one has its tail at 70 percent already."""
        fast = finalist("sync -w 9", 300, (0.1, 0.5, 0.9))
        even = finalist("gevent", 250, (0.05, 0.1, 0.15))
        assert verdict.judge([fast, even], "", Target("p99", 0.2), Limits(4.0)).best is even

    def test_a_target_that_none_meets(self) -> None:
        found = verdict.judge([finalist("gevent", 300), finalist("sync", 20)], "", Target("p99", 0.01), Limits(4.0))
        assert found.refusal.startswith("No configuration meets p99 < 10 ms")

    def test_a_service_that_all_workers_share(self) -> None:
        """As many requests a second whatever the configuration, and the processors are idle."""
        every = [finalist(name, rate) for name, rate in (("sync -w 9", 100), ("gthread", 103), ("gevent", 98))]
        assert "makes no difference" in verdict.judge(every, "", None, Limits(4.0)).refusal

    def test_busy_processors_make_configurations_equal_too(self) -> None:
        every = [
            finalist(name, rate, cpu=0.04) for name, rate in (("sync -w 4", 100), ("gthread", 103), ("gevent", 98))
        ]
        assert not verdict.judge(every, "", None, Limits(4.0)).refusal

    def test_requests_that_fail(self) -> None:
        with pytest.raises(BenchError, match="13% of the requests to tricorn sync failed under load"):
            verdict.judge([finalist("sync", 100, failed=10)], "", None, Limits(4.0))

    def test_one_that_fails_is_left_out(self) -> None:
        broken, whole = finalist("gevent", 300, failed=30), finalist("sync", 100)
        assert verdict.judge([broken, whole], "", None, Limits(4.0)).best is whole


def test_a_request_that_alone_takes_longer_than_the_target() -> None:
    costs = {"sync": Costs("sync", 0.31, 0.02, 3.2, 1, 0, MIB)}
    with pytest.raises(BenchError, match=r"p99 < 200 ms cannot be met: a single request takes 310 ms .* 20 ms on CPU"):
        verdict.check_alone(costs, Target("p99", 0.2))


@pytest.mark.parametrize(
    ("value", "text"), [(1.25, "1.25 s"), (0.31, "310 ms"), (4.21e-5, "42.1 µs"), (3e-7, "0.3 µs")]
)
def test_tune_target_durations(value: float, text: str) -> None:
    assert verdict.seconds(value) == text
