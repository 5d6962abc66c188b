"""What is slow, and what the slow requests did that others did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tricorn
from tricorn_tools.doctor.slow.analysis import EDGES, analyse
from tricorn_tools.doctor.stacks import Frame

USUAL, SLOW = EDGES.index(0.05), EDGES.index(0.25)


def row(**values: int) -> list[int]:
    found = [0] * len(EDGES)
    found[USUAL], found[SLOW] = values.get("usual", 0), values.get("slow", 0)
    return found


def stack(line: int, **values: int) -> dict[str, Any]:
    return {"frames": [["a.py", line, "inner"], ["a.py", 1, "outer"]], "milliseconds": row(**values)}


def answer(*stacks: dict[str, Any], early: int = 0, workers: int = 1, **values: int) -> dict[str, Any]:
    route = {"route": "GET /", "early": early, "requests": row(**values), "stacks": stacks, "lost_milliseconds": 0}
    profile = {"schema": "tricorn-slow/1", "after": 50, "late": 3, "routes": [route]}
    return {"workers": [{"slot": number, "pid": number, "profile": profile} for number in range(workers)]}


def test_slow_is_the_slowest_per_cent() -> None:
    [route] = analyse(answer(stack(5, slow=500), early=980, usual=18, slow=2)).routes
    assert (route.requests, route.slow, route.boundary) == (1000, 20, 0.05), "two of a thousand are not a per cent"
    [route] = analyse(answer(stack(5, slow=500), early=80, usual=18, slow=2)).routes
    assert (route.requests, route.slow, route.boundary) == (100, 2, 0.25)


def test_if_fewer_are_noted_all_of_them_are_slow() -> None:
    [route] = analyse(answer(stack(5, slow=500), early=10_000, slow=2)).routes
    assert (route.slow, route.boundary) == (2, 0.25)


def test_what_usual_requests_do_as_well_is_no_reason() -> None:
    both, slow = stack(5, usual=9_000, slow=200), stack(7, slow=400)
    [route] = analyse(answer(both, slow, usual=90, slow=2)).routes
    assert [(line.stack[-1].line, round(line.more, 3)) for line in route.lines] == [(7, 0.2)]
    assert [frame.function for frame in route.lines[0].stack] == ["outer", "inner"]


def test_a_line_that_early_requests_may_have_been_at_is_no_reason() -> None:
    perhaps, slow = stack(5, slow=80), stack(7, slow=600)
    [route] = analyse(answer(perhaps, slow, early=98, slow=2)).routes
    assert [line.stack[-1].line for line in route.lines] == [7], "40 ms: early ones may have taken 50 there"
    [route] = analyse(answer(perhaps, slow, early=20, usual=78, slow=2)).routes
    assert [line.stack[-1].line for line in route.lines] == [7, 5], "most of the others were looked at, and not there"


def test_workers_are_added_up_and_rubbish_is_left_out() -> None:
    told = answer(stack(7, slow=400), early=98, slow=2, workers=3)
    for rubbish in ({}, {"routes": 5}, {"routes": [{}], "late": 1}, {"routes": [{"route": 1}], "late": 1}):
        told["workers"].append({"slot": 9, "pid": 9, "profile": rubbish})
    report = analyse(told)
    assert report.late == 9
    [route] = report.routes
    assert (route.requests, route.slow, round(route.lines[0].slow, 3)) == (300, 6, 0.2)


def test_where_a_line_waits_in_c_is_told_with_it_and_is_no_line_of_its_own() -> None:
    def at(native: str, **values: int) -> dict[str, Any]:
        told = stack(7, **values)
        return told | {"frames": [["[libpq]", 0, native], *told["frames"]]}

    server = str(Path(tricorn.__file__).parent / "workers" / "sync.py")
    only = {"frames": [["[libc]", 0, "poll"], [server, 3, "serve"]], "milliseconds": row(slow=900)}
    both = answer(at("PQexec", slow=300), at("PQconsumeInput", slow=60), stack(7, slow=40), only, usual=98, slow=2)
    [route] = analyse(both).routes
    [line] = route.lines
    assert ([frame.line for frame in line.stack], round(line.slow, 3)) == ([1, 7], 0.2)
    assert (line.native, line.whole[-1]) == (Frame("[libpq]", 0, "PQexec"), Frame("[libpq]", 0, "PQexec"))


def test_one_route_is_chosen() -> None:
    assert analyse(answer(slow=1), "GET /other").routes == ()
    assert len(analyse(answer(slow=1), "GET /").routes) == 1
