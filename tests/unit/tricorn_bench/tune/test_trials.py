"""Which configurations are measured, and with how many requests at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from tricorn.record import replace
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.measure import Bench, Measured
from tricorn_bench.bench.trial import Trial
from tricorn_bench.tune import model, trials
from tricorn_bench.tune.calibrate import Calibration
from tricorn_bench.tune.model import Costs, Limits
from tricorn_bench.tune.verdict import Finalist

from tests.unit.tricorn_bench.tune.test_verdict import one_round

MIB = 2**20
FOUND = Calibration(
    {
        "sync": Costs("sync", 0.1, 0.002, 10.0, 1, 30 * MIB, 10 * MIB),
        "gevent": Costs("gevent", 0.1, 0.002, 450.0, 900, 30 * MIB, 10 * MIB),
    },
    {},
)


def test_a_queue_of_slow_requests_is_answered_within_seconds() -> None:
    """Eight workers answer eight a second: 64 at once would take eight seconds."""
    slow = Calibration({"sync": Costs("sync", 1.0, 0.01, 1.0, 1, 30 * MIB, 10 * MIB)}, {})
    assert trials.connections(slow, Configuration.parse("sync -w 8")) == 40
    assert trials.connections(slow, Configuration.parse("sync -w 40")) == 80


@pytest.mark.parametrize(
    ("line", "requests"),
    [
        ("sync -w 4", 64),
        ("sync -w 50", 100),
        ("gthread -w 4 --threads 16", 128),
        ("gevent -w 2", 1800),
        ("gevent -w 12", 10_000),
        ("gunicorn -w 4", 64),
    ],
)
def test_slots_are_filled_twice_and_each_loop_as_when_it_was_measured(line: str, requests: int) -> None:
    assert trials.connections(FOUND, Configuration.parse(line)) == requests


def measured(words: str, costs: Costs, limits: Limits, rate: float, memory: int) -> Finalist:
    configuration = Configuration.parse(words)
    prediction = model.predict(costs, limits, configuration.workers, configuration.threads)
    return Finalist(configuration.name, prediction, {1.0: [one_round(rate, 0.1, memory=memory)]})


class TestRefined:
    """Figures of benches.tune, with one processor and 250 MiB."""

    LIMITS = Limits(1.0, memory=250 * MIB)

    def refined(self, costs: Costs, *finalists: Finalist, limits: Limits = LIMITS) -> str | None:
        found = trials.refined(Calibration({costs.worker_class: costs}, {}), limits, finalists)
        return None if found is None else found.configuration.name

    def test_one_worker_that_served_more_by_itself_is_measured(self) -> None:
        costs = Costs("gevent", 0.0508, 55.7e-6, 16_266, 1000, 25 * MIB, 25 * MIB)
        two = measured("gevent -w 2", costs, self.LIMITS, 13_958, 80 * MIB)
        assert self.refined(costs, two) == "tricorn gevent -w 1"
        assert self.refined(costs, two, limits=Limits(1.0)) == "tricorn gevent -w 1"

    def test_as_many_workers_as_fit_are_measured_if_more_of_them_exceeded_the_limit(self) -> None:
        costs = Costs("gevent", 1.0, 110e-6, 972, 1000, 30 * MIB, 23 * MIB)
        seven = measured("gevent -w 7", costs, self.LIMITS, 4972, 276 * MIB)
        assert self.refined(costs, seven) == "tricorn gevent -w 5"

    def test_more_workers_are_measured_if_those_that_were_planned_left_room(self) -> None:
        costs = Costs("asgi", 0.052, 0.0009, 48.3, 32, 18 * MIB, 13 * MIB)
        thirteen = measured("asgi -w 13", costs, self.LIMITS, 600, 169 * MIB)
        assert self.refined(costs, thirteen) == "tricorn asgi -w 18"

    def test_workers_that_would_add_nothing_are_not_measured(self) -> None:
        costs = Costs("gthread", 0.0507, 165e-6, 2479, 128, 21 * MIB, 21 * MIB)
        three = measured("gthread -w 3 --threads 128", costs, self.LIMITS, 7129, 85 * MIB)
        assert self.refined(costs, three) is None

    def test_a_configuration_is_measured_once(self) -> None:
        costs = Costs("gevent", 0.0508, 55.7e-6, 16_266, 1000, 25 * MIB, 25 * MIB)
        one, two = (measured(f"gevent -w {n}", costs, self.LIMITS, 15_000 - n, 80 * MIB) for n in (1, 2))
        assert self.refined(costs, one, two) is None
        assert self.refined(costs, two, one) is None

    def test_of_servers_that_the_model_does_not_know_nothing_is_planned(self) -> None:
        costs = Costs("sync", 0.1, 0.002, 10.0, 1, 30 * MIB, 10 * MIB)
        rounds = {1.0: [one_round(100, 0.1)]}
        assert self.refined(costs, Finalist("gunicorn -w 4", None, rounds)) is None


def test_equal_configurations_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The current one, which is named as the user wrote it, and the same one as planned."""
    limits = Limits(1.0)
    planned = [model.predict(FOUND.costs["sync"], limits, 1), model.predict(FOUND.costs["gevent"], limits, 1)]
    today = replace(planned[0], configuration=Configuration.parse("sync"))
    asked: list[str] = []

    def measure(_: object, given: list[Trial]) -> Measured:
        asked.extend(trial.configuration.name for trial in given)
        return Measured()

    monkeypatch.setattr(trials, "measure", measure)
    bench = cast("Bench", SimpleNamespace(swarm=None))
    assert trials.compare(bench, FOUND, [today, *planned], 1.0) == []
    assert asked == ["tricorn sync", "tricorn gevent -w 1"]
