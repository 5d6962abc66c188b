"""Rates and percentiles are those of the interval between two looks."""

from __future__ import annotations

import json
import random

import pytest
from tricorn.metrics.scoreboard import percentile
from tricorn.record import replace
from tricorn_tools.top import as_json, change, screen
from tricorn_tools.top.change import bound
from tricorn_tools.top.keys import View
from tricorn_tools.top.look import Counted, Worker
from tricorn_tools.top.screen import Scene

from tests.unit.tricorn_tools.top.made import EDGES, busy_shop, counted, entry, look, page, route, shop_of_routes


def test_rates_are_differences_by_the_time_between() -> None:
    before = counted(100, cpu=1.0, statuses=(0, 90, 0, 5, 5), queue_full=1)
    now = counted(150, cpu=2.0, statuses=(0, 128, 0, 15, 7), queue_full=4, queue_late=1, leaving=2)
    found = change.of(before, now, 2.0)
    assert (found.requests, found.cpu, found.shed) == (25.0, 0.5, 3.0)
    assert (found.client_errors, found.server_errors) == (10 / 50, 2 / 50)
    assert (found.total, found.blocked) == (None, None)


def test_percentiles_are_of_what_ended_in_the_interval_alone() -> None:
    before = counted(total={100_000_000: 1_000_000})
    now = counted(total={100_000_000: 1_000_000, 1_000_000: 98, 50_000_000: 2}, queue={0: 1}, gil={1_000_000: 4})
    found = change.of(before, now, 1.0)
    assert found.total is not None
    assert found.total.count == 100
    assert 0.001 < found.total.p50 < 0.00125
    assert 0.05 < found.total.p99 < 0.06
    assert found.queue is not None
    assert found.queue.p99 < 0.000_001
    assert found.gil is not None
    assert (found.gil.p50, found.gil.p99) == (0.0025, 0.0025), "the upper edge"


def test_a_percentile_lies_within_its_bucket() -> None:
    counts = [0] * (len(EDGES) - 1)
    counts[3], counts[-1] = 3, 1
    assert EDGES[3] / 1e9 < percentile(counts, EDGES, 0.5) <= EDGES[4] / 1e9
    assert percentile(counts, EDGES, 0.75) == EDGES[4] / 1e9
    assert percentile(counts, EDGES, 0.99) <= EDGES[-1] / 1e9
    assert percentile([0, 0], [0, 1, 2], 0.5) == bound([0, 0], [0, 1, 2], 0.5) == 2 / 1e9, "nothing is counted"
    assert [bound([4, 0, 6, 0], [0, 1, 2, 3, 4], share) for share in (0.4, 0.41, 1.0)] == [1 / 1e9, 3 / 1e9, 3 / 1e9]


@pytest.mark.parametrize("rubbish", [2**64 - 1, 2**63])
def test_what_cannot_be_is_not_known(rubbish: int) -> None:
    """A page in which anything stands: nothing of it becomes a rate, and what is sound beside it does."""
    before, now = counted(5), counted(rubbish, total={1_000_000: rubbish}, statuses=(rubbish, 0, 0, 0, 0))
    for first, second in ((before, now), (now, before)):
        found = change.of(first, second, 1.0)
        assert (found.requests, found.total, found.client_errors) == (None, None, None)
        assert found.shed == 0


def test_nothing_is_said_without_something_to_compare_with() -> None:
    for before, now, seconds in ((None, counted(1), 1.0), (counted(1), None, 1.0), (counted(1), counted(2), 0.0)):
        found = change.of(before, now, seconds)
        assert (found.requests, found.total, found.cpu) == (None, None, None)


def test_the_share_that_a_loop_was_blocked_is_told_where_it_is_measured() -> None:
    def loop(blocked: int) -> Counted:
        return counted(**{change.LOOP_WORK: 6_000_000_000, change.BLOCKED: blocked})

    assert change.of(loop(0), loop(500_000_000), 2.0).blocked == 0.25
    assert change.of(loop(0), loop(5_000_000_000), 2.0).blocked == 1.0
    assert change.of(loop(0), loop(0), 2.0).blocked == 0
    assert change.of(counted(), counted(**{change.LOOP_WORK: 0, change.BLOCKED: 0}), 2.0).blocked is None


def test_what_the_arbiter_has_counted_is_told() -> None:
    first = look(1.0, reloads={"committed": 1, "rolled_back": 0}, exits={"crash": 2, "reload": 4})
    second = look(2.0, reloads={"committed": 1, "rolled_back": 1}, exits={"crash": 3, "reload": 6})
    assert change.between(first, second).happened == (
        "reload rolled back, nothing changed; see the log",
        "1 worker exited: crash",
        "2 workers exited: reload",
    )
    assert change.between(second, second).happened == change.between(None, second).happened == ()
    assert change.between(first, look(2.0, reloads={"new": 1})).happened == ("reload new",)


def test_a_worker_is_compared_with_itself() -> None:
    """A successor has another number, and the page of the one before."""
    first = look(1.0, Worker(entry(1), page(counted(10)), None), totals=counted(10))
    second = look(
        2.0, Worker(entry(1), page(counted(30)), None), Worker(entry(2), page(counted(17)), None), totals=counted(47)
    )
    found = change.between(first, second)
    assert (found.seconds, found.all.requests) == (1.0, 37.0)
    assert (found.workers[1].requests, found.workers[2].requests) == (20.0, None)
    alone = change.between(None, second)
    assert (alone.seconds, alone.all.requests, alone.workers[1].requests) == (0.0, None, None)


def test_what_routes_cost_in_the_interval() -> None:
    before, now = shop_of_routes()
    routes = change.between(before, now).routes
    report = routes["/report"]
    assert (report.requests, report.server_errors, report.load) == pytest.approx((12, 2 / 12, 4.5))
    assert (report.cpu, report.blocked, report.yielded) == pytest.approx((0.5 / 4.5, 3.5 / 4.5, 0))
    assert report.total is not None
    assert (report.total.count, 0.25 < report.total.p50 < 0.5) == (12, True)
    assert (routes["/new"].requests, routes["/new"].server_errors) == (1, 0), "it began with nothing"
    assert (routes["/quiet"].requests, routes["/quiet"].total, routes["/quiet"].cpu) == (0, None, None)
    assert change.between(None, now).routes == {}
    assert change.between(replace(before, routes=None), now).routes == {}


def test_routes_that_are_rubbish_have_no_figures() -> None:
    draw = random.Random(12)
    start, _ = busy_shop()
    for _ in range(200):
        looks = []
        for at in (100.0, 101.0):
            words = [draw.getrandbits(draw.choice((3, 40, 64))) for _ in range(8)]
            made = route("/", words[0], words[1] / 1e9, errors=words[2], told=words[3] / 1e9, cpu=words[4] / 1e9)
            looks.append(replace(start, at=at, routes=(made,)))
        changes = change.between(*looks)
        found = changes.routes["/"]
        assert found.requests is None or 0 <= found.requests <= change.IMPOSSIBLE
        assert found.cpu is None or 0 <= found.cpu <= 1.01
        scene = Scene(looks[1], changes, View(shows_routes=True))
        assert all(sum(len(span.text) for span in line) <= 80 for line in screen.render(scene, 80, 12))
        json.dumps(as_json.of(looks[1], changes, 0.0), allow_nan=False)
