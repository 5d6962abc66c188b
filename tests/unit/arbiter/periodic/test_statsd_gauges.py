"""What the arbiter measures for statsd."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.periodic.statsd_gauges import StatsdGauges, backlog
from tricorn.arbiter.policy.state import NEVER, State

from tests.harness.deadline import until
from tests.unit.arbiter.policy.support import QUIET

STATE = State(1, QUIET)


class Log:
    def __init__(self) -> None:
        self.told: list[tuple[str, object, str]] = []

    def debug(self, message: str, *arguments: object, extra: dict[str, Any]) -> None:
        assert message % arguments
        self.told.append((extra["metric"], extra["value"], extra["mtype"]))


def parts(**settings: bool) -> Any:
    config = SimpleNamespace(**{"enable_backlog_metric": False, "statsd_extended": False, **settings})
    generation = SimpleNamespace(config=config, log=Log(), listeners=[])
    return SimpleNamespace(generation=generation, processes=SimpleNamespace(handles={}))


def look(job: Periodic, now: float) -> None:
    if now >= job.due(STATE, now):
        assert job.run(STATE, now) == ()


def test_the_number_of_workers_is_told_when_it_has_changed() -> None:
    around = parts()
    gauge = StatsdGauges(around, 0)
    for count in (2, 2, 1, 0, 0):
        around.processes.handles = dict.fromkeys(range(count))
        look(gauge, 0.0)
    assert around.generation.log.told == [("gunicorn.workers", count, "gauge") for count in (2, 1, 0)]
    assert gauge.due(STATE, 0.0) == NEVER


def test_the_others_are_told_once_a_second_if_they_are_wanted() -> None:
    around = parts(enable_backlog_metric=True, statsd_extended=True)
    gauges = StatsdGauges(around, 100)
    assert gauges.due(STATE, 100) == 101
    for now in (100.9, 101.0, 101.5, 102.0):
        look(gauges, now)
    once = [
        ("gunicorn.backlog", 0, "histogram"),
        ("gunicorn.requests.running", 0, "gauge"),
        ("gunicorn.requests.waiting", 0, "gauge"),
    ]
    assert around.generation.log.told == once * 2


def test_the_backlog_is_what_waits_at_tcp_listeners() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket(socket.AF_UNIX) as unix:
        at = SimpleNamespace(socket=listening)
        assert backlog([at]) == 0  # type: ignore[list-item]  # all that is asked of a listener
        waiting = [socket.create_connection(listening.getsockname()) for _ in range(3)]
        until(lambda: backlog([at]) == 3, "three wait")  # type: ignore[list-item]
        assert backlog([SimpleNamespace(socket=unix)]) == -1  # type: ignore[list-item]
        for each in waiting:
            each.close()
