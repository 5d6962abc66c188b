"""What of a measurement counts, as far as no server is started."""

from __future__ import annotations

from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.measure import Measured, _Found, _Progress, window
from tricorn_bench.bench.trial import Stage, Trial
from tricorn_bench.load import Http2, Plan, Target

from tests.unit.tricorn_bench.bench.made import a_round

USERS = Trial(
    Configuration.parse("gunicorn sync -w 4"),
    (Stage(kept=False), *(Stage(users=count, at=float(count)) for count in (10, 100, 1000))),
    "gunicorn sync",
)


def found(*starts: int) -> _Found:
    """After starts that had so many rounds, of three stages, before they failed."""
    found = _Found(Measured(), [USERS])
    for count in starts:
        if count < 3:
            found.failed(USERS, count, "left with status 1: no memory")
        found.add(USERS, [a_round() for _ in range(count)])
    return found


def test_a_start_counts_as_a_whole() -> None:
    whole = found(3, 3)
    assert whole.starts_of(USERS) == 2
    assert [(cell["at"], len(cell["rounds"])) for cell in whole.measured(_Progress()).cells] == [
        (10, 2),
        (100, 2),
        (1000, 2),
    ]


def test_a_server_that_fails_at_a_level_keeps_the_lower_ones() -> None:
    failed = found(2).measured(_Progress())
    assert [cell["at"] for cell in failed.cells] == [10, 100]
    assert failed.absent == {}
    assert failed.notes == ["gunicorn sync -w 4 at 1,000: left with status 1: no memory."]


def test_one_that_fails_at_once_is_left_out() -> None:
    failed = found(3, 0).measured(_Progress())
    assert failed.cells == []
    assert failed.absent == {"gunicorn sync -w 4": "left with status 1: no memory"}


def test_a_round_measures_what_is_missing() -> None:
    assert found(3).missing(0) == []
    assert found(3).missing(1) == [USERS]
    assert found(0).missing(1) == []


def test_what_was_measured_before_is_not_measured_again() -> None:
    again = _Found(found(3).measured(_Progress()), [USERS])
    assert again.starts_of(USERS) == 1


def test_the_window_of_a_closed_load_ends_before_the_last_answers() -> None:
    """64 connections have a request under way each at the end; four of them got no answer."""
    load = a_round((1000,) * 660)["load"]
    load["unanswered"] = 4
    plan = Plan(targets=(Target("http://127.0.0.1/"),), connections=64, seconds=1.0)
    assert window(load, plan) == {"seconds": 1.0, "answered": 600}
    streams = Plan(targets=plan.targets, connections=16, seconds=1.0, http2=Http2(streams=4))
    assert window(load, streams) == window(load, plan)


def test_an_open_load_over_http2_has_as_many_requests_at_a_time_as_one_without() -> None:
    stage = Stage(rate=500.0, connections=8)
    assert [stage.connections_of(streams) for streams in (1, 10, 1000)] == [1000, 100, 8]
    assert Stage(connections=8).connections_of(10) == 8
