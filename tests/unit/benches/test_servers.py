"""Servers in turns, and what the load generator says of one."""

from __future__ import annotations

import argparse

import pytest
from tricorn_bench.load import Histogram, Result

from benches.harness.load import good
from benches.harness.process import DidNotServe
from benches.harness.servers import Figures, Found, in_turns, shortened, table


def answered(**more: object) -> Result:
    counted = {"answered": 100, "sent": 100, "seconds": 2.0, "latency": {}, "statuses": {"200": 90, "302": 10}}
    rest = {"errors": {"timeout": 0}, "histogram": Histogram().encode(), "generator": {}}
    return Result({"schema": "tricorn-load/1", **counted, **rest, **more})


def test_errors_are_bad_answers_and_requests_without_one() -> None:
    assert good(answered()) == 100
    with pytest.raises(DidNotServe, match="15 errors of 100 requests"):
        good(answered(statuses={"200": 90, "500": 10}, errors={"timeout": 3, "closed": 2}))
    with pytest.raises(DidNotServe, match="answered nothing"):
        good(answered(answered=0, statuses={}))


def test_servers_take_turns_and_a_row_has_medians(capsys: pytest.CaptureFixture[str]) -> None:
    order: list[str] = []

    def measure(line: str, _: Found) -> Figures:
        order.append(line)
        if line == "c":
            raise DidNotServe("left with status 1")
        return {"p99 ms": float(len(order)), "verdict": "yes", "tail": [1, 2]}

    lines = {"one": "a", "other": "b", "third": "c", "elsewhere": "d"}
    found = in_turns(lines, argparse.Namespace(servers="o,third", rounds=3), measure)
    assert order == ["a", "b", "c", "a", "b", "a", "b"]
    assert "third: left with status 1" in capsys.readouterr().out
    page = table("Title", found)
    cells = {
        row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")[2:-1]] for row in page.splitlines()[2:5]
    }
    assert cells["server"] == ["p99 ms", "verdict"]
    assert cells["one"] == ["4", "yes"]
    assert page.endswith("* third: left with status 1")


@pytest.mark.parametrize(
    ("value", "text"), [(1234.5, "1,234"), (0.012345, "0.0123"), (7, "7"), (None, "–"), ("yes", "yes"), (99.95, "100")]
)
def test_figures_are_short(value: object, text: str) -> None:
    assert shortened(value) == text
