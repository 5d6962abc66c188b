"""What the presets measure."""

from __future__ import annotations

import pytest
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.presets import PRESETS, Asked
from tricorn_bench.bench.trial import Stage

from tests.harness import with_each


def asked(**more: object) -> Asked:
    return Asked(**{"configurations": (), "interface": "WSGI", "stage": Stage(), **more})  # type: ignore[arg-type]


@with_each(("interface", "classes"), {"WSGI": 4, "ASGI": 1, "tornado": 1, "aiohttp": 1}.items())
def test_every_class_that_can_run_the_application(interface: str, classes: int) -> None:
    found = PRESETS["classes"].defaults(asked(interface=interface))
    assert len(found) == classes
    assert not any(one.why_not for one in found)


def test_workers_are_a_configuration_each_and_one_line() -> None:
    trials = PRESETS["workers"].trials(asked(), [Configuration.parse("gthread --threads 4")])
    assert [trial.configuration.workers for trial in trials] == list(range(1, 11))
    assert {trial.family for trial in trials} == {"tricorn gthread --threads 4"}
    assert [trial.stages[0].at for trial in trials] == [float(count) for count in range(1, 11)]


def test_a_server_of_one_process_has_one_point_with_a_reason() -> None:
    (trial,) = PRESETS["workers"].trials(asked(), [Configuration.parse("waitress")])
    assert trial.configuration.why_not == "it has one process only"


def test_users_are_there_long_enough_for_each_to_ask() -> None:
    (trial,) = PRESETS["users"].trials(asked(levels=(10, 10_000)), [Configuration.parse("gevent")])
    assert [stage.users for stage in trial.stages] == [10, 10_000]
    assert all(stage.seconds > stage.think[1] for stage in trial.stages)
    assert trial.stages[1].most_connections == 10_000


def test_connections_go_beyond_the_limit_of_a_database() -> None:
    (trial,) = PRESETS["connections"].trials(asked(limit=100), [Configuration.parse("gevent")])
    assert [stage.connections for stage in trial.stages] == [50, 75, 100, 125, 200]


def test_tails_measure_the_capacity_first() -> None:
    (trial,) = PRESETS["tails"].trials(asked(levels=(30, 85)), [Configuration.parse("sync")])
    assert [(stage.kept, stage.share, stage.at) for stage in trial.stages] == [
        (False, None, None),
        (False, None, None),
        (True, 0.30, 30.0),
        (True, 0.85, 85.0),
    ]
    with pytest.raises(BenchError, match="percent of the capacity"):
        PRESETS["tails"].trials(asked(levels=(120,)), [Configuration.parse("sync")])
