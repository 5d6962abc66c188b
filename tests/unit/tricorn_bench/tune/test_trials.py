"""How many requests at once a configuration is measured with."""

from __future__ import annotations

import pytest
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.tune import trials
from tricorn_bench.tune.calibrate import Calibration
from tricorn_bench.tune.model import Costs

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
