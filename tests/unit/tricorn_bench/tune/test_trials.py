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
