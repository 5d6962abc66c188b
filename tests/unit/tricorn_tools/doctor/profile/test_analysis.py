"""What workers have seen, added up."""

from __future__ import annotations

from typing import Any

import pytest
from tricorn_tools.doctor.profile.analysis import ORDER, analyse, functions, heaviest

Json = dict[str, Any]

FRAMES = [
    ["a.py", 7, "inner"],
    ["a.py", 3, "outer"],
    ["[libpq]", 0, "PQexec"],
    ["a.py", 9, "outer"],
    ["b.py", 1, "background"],
]


def owner(of: str, name: str, *stacks: list[Any], requests: int = 0, microseconds: int = 0) -> Json:
    return {"of": of, "name": name, "requests": requests, "microseconds": microseconds, "stacks": list(stacks)}


def worker(slot: int, *owners: Json, **values: Any) -> Json:
    profile = {
        "schema": "tricorn-profile/1",
        "ended": True,
        "milliseconds": 2000,
        "interval_microseconds": 10_000,
        "cost_microseconds": 30_000,
        "looks": 195,
        "late": 5,
        "missed": 2,
        "lost_microseconds": 0,
        "owners": list(owners),
        "frames": FRAMES,
    }
    return {"slot": slot, "pid": 100 + slot, "class": "gevent", "profile": profile | values}


def answer(*workers: Json, missing: tuple[int | None, ...] = ()) -> Json:
    return {"workers": list(workers), "missing": list(missing)}


def usual() -> Json:
    """Two workers that have seen the same route, and one of them something besides."""
    route = owner("request", "GET /", [[2, 0, 1], 30, 300_000], [[0, 1], 10, 100_000], requests=3, microseconds=450_000)
    loop = owner("loop", "event loop", [[4], 20, 200_000], microseconds=200_000)
    return answer(worker(2, route), worker(1, loop, route))


def test_workers_are_added_up_per_route_and_told_each_by_itself() -> None:
    report = analyse(usual())
    assert [(each.of, each.name, each.requests, round(each.seconds, 3)) for each in report.owners] == [
        ("request", "GET /", 6, 0.9),
        ("loop", "event loop", 0, 0.2),
    ]
    assert [each.slot for each in report.workers] == [1, 2]
    assert dict(report.workers[0].of) == {"request": 0.45, "loop": 0.2, "thread": 0.0}
    assert round(report.workers[0].cost, 4) == 0.015
    [(first, cost), (second, _)] = heaviest(report.owners[0])
    assert [frame.function for frame in first] == ["outer", "inner", "PQexec"]
    assert (round(cost.seconds, 3), cost.samples) == (0.6, 60)
    assert [frame.function for frame in second] == ["outer", "inner"]


def test_a_function_has_time_of_its_own_and_that_of_those_it_called() -> None:
    recursive = owner("request", "GET /", [[0, 1], 1, 100_000], [[3, 1], 1, 50_000])
    found = {(each.name): (round(each.own, 3), round(each.whole, 3)) for each in functions(_owners(recursive))}
    assert found == {"inner": (0.1, 0.1), "outer": (0.05, 0.15)}, "a function that calls itself counts once"


def _owners(*owners: Json) -> Any:
    return analyse(answer(worker(1, *owners))).owners


def test_one_route_is_chosen() -> None:
    assert [each.name for each in analyse(usual(), "GET /").owners] == ["GET /"]
    assert analyse(usual(), "event loop").owners == ()


@pytest.mark.parametrize(
    "rubbish",
    [
        {},
        {"profile": 5},
        {"profile": {}},
        worker(1, owner("other", "x")),
        worker(1, owner("request", "x", [[99], 1, 1])),
        worker(1, owner("request", "x", [[-1], 1, 1])),
        worker(1, frames=[["a.py"]]),
        worker(1, looks="many"),
    ],
)
def test_a_worker_that_wrote_rubbish_has_told_nothing(rubbish: Json) -> None:
    told = usual()
    told["workers"].append({"slot": 9, "pid": 9, "class": "sync", "profile": {}} | rubbish | {"slot": 9})
    report = analyse(told)
    assert report.missing == (9,)
    assert [each.slot for each in report.workers] == [1, 2]
    assert {each.of for each in report.owners} <= set(ORDER)
