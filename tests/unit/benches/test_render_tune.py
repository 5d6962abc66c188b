"""The results of tricorn tune on its pages, from a run that is made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benches.render import tune
from tests.unit.benches.test_tune import ROW


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "2026-11-28-tune"
    folder.mkdir()
    rows = [ROW, {**ROW, "case": "mixed", "command": "tricorn tune shop:app", "text": "Use: gevent\n"}]
    machine = {"cpu": "a processor, 2 cores", "kernel": "Linux 6", "python": "CPython 3.11.7"}
    machine |= {"server's cores": "0", "load generator's cores": "1"}
    (folder / "raw.json").write_text(json.dumps({"environment": machine, "data": rows}))
    return folder


def test_the_newest_run_is_rendered(tmp_path: Path) -> None:
    for name in ("2026-01-02-tune", "2026-11-28-tune", "2026-12-01-herd"):
        (tmp_path / name).mkdir()
    assert tune.newest(tmp_path).name == "2026-11-28-tune"


def test_the_table_names_the_machine_and_the_cores(run: Path) -> None:
    page = tune.render(run)[tune.RESULTS]
    assert "over a pool of five connections" in page
    assert "(../../benches/runs/2026-11-28-tune/README.md)" in page
    assert "a processor, 2 cores, Linux 6, CPython 3.11.7; the server on core 0, the load on core 1." in page


def test_answers_are_the_output_itself(run: Path) -> None:
    page = tune.render(run)[tune.ANSWERS]
    assert "```text\n$ tricorn tune shop:app\nUse: gevent\n```" in page
    assert page.count("## ") == 1, "questions that were not measured are left out"
