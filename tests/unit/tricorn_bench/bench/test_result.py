"""Reading results: what is not one is told in one sentence, with the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tricorn_bench.bench import result as results
from tricorn_bench.bench.errors import BenchError

from tests.harness import with_each
from tests.unit.tricorn_bench.bench.made import a_result


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    results.write(a_result(), tmp_path / "result.json")
    assert results.read(tmp_path / "result.json") == a_result()


@with_each(
    ("text", "told"),
    {
        '{"a":': "it is not JSON",
        "[]": "it has no 'schema'",
        '{"schema": "tricorn-bench/2"}': "has the schema 'tricorn-bench/2'; this version reads 'tricorn-bench/1'",
        '{"schema": "tricorn-bench/1"}': "made is missing",
    }.items(),
)
def test_what_is_no_result_is_told(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(BenchError, match=told):
        results.read(tmp_path / "bad.json")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"none\.json cannot be read: No such file"):
        results.read(tmp_path / "none.json")


def without(place: list[Any], value: Any) -> Any:
    changed = json.loads(json.dumps(a_result()))
    part = changed
    for key in place[:-1]:
        part = part[key]
    if value is None:
        del part[place[-1]]
    else:
        part[place[-1]] = value
    return changed


@with_each(
    ("place", "value", "told"),
    [
        (["cells", 0, "rounds", 1, "cpu", "user"], None, "cells[0].rounds[1].cpu.user is missing"),
        (["cells", 0, "rounds"], "three", 'cells[0].rounds should be a list, and is "three"'),
        (["cells", 0, "rounds", 0, "connections"], 1.5, "rounds[0].connections should be a whole number, and is 1.5"),
        (["machine", "cpu"], 3, "machine.cpu should be a text, and is 3"),
        (["cells", 0, "at"], True, "cells[0].at should be a number, and is true"),
    ],
)
def test_a_damaged_result_is_told_with_the_place(place: list[Any], value: Any, told: str) -> None:
    assert told in (results.misfit(without(place, value), results.Result, "") or "")
