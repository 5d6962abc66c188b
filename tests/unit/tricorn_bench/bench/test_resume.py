"""What stays of a result when it is resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tricorn_bench.bench import result as results
from tricorn_bench.bench import resume
from tricorn_bench.bench.errors import BenchError

from tests.unit.tricorn_bench.bench.made import a_result, a_round, configured


def test_what_was_measured_stays_with_what_is_to_be_known_of_it(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    stays = [
        "tricorn sync at 1,000: left with status 1: no memory.",
        f"{resume.SHORTENED} 1.2 s of load or more, to end within --budget 150.",
    ]
    made = a_result(
        {"tricorn sync": [a_round()]},
        configurations=[configured("tricorn sync", command="tricorn -k sync shop:app")],
        notes=[*stays, "Of the machine, which may be another one now."],
    )
    results.write(made, path)
    before = resume.kept(path, made["application"], made["load"])
    assert before.cells == made["cells"]
    assert before.commands == {"tricorn sync": ["tricorn", "-k", "sync", "shop:app"]}
    assert before.notes == stays


def test_another_load_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    made = a_result({"tricorn sync": [a_round()]})
    assert resume.kept(path, made["application"], made["load"]).cells == ()
    results.write(made, path)
    with pytest.raises(BenchError, match="cannot be resumed with"):
        resume.kept(path, made["application"], "another load")
