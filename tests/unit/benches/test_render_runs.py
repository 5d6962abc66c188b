"""The list of measurements has each run that is kept, the newest first, with the versions that it was made with."""

from __future__ import annotations

import json
from pathlib import Path

from benches.render.runs import render


def test_each_run_is_a_row(tmp_path: Path) -> None:
    def folder(name: str) -> Path:
        (tmp_path / name).mkdir(parents=True)
        return tmp_path / name

    old = folder("2026-01-01-cases")
    machine = {"cpu": "A(R) B, 2 cores", "python": "CPython 3.11.7", "cc": "cc 12", "granian": "2.8.7"}
    (old / "raw.json").write_text(json.dumps({"environment": {**machine, "tricorn": "0.1.0 (abc1234-dirty)"}}))
    (old / "README.md").write_text("# One | other\n\nmore\n")
    one = folder("2026-02-01-classic/one")
    used = [{"server": "tricorn", "version": "0.1.0"}, {"server": "uvicorn", "version": "0.54"}]
    told = {"machine": {**machine, "tricorn": "0.1.0", "commit": "def5678"}, "configurations": used}
    (one / "result.json").write_text(json.dumps(told))
    _, _, *rows = render(list(tmp_path.iterdir())).splitlines()
    assert rows == [
        "| [2026-02-01-classic](2026-02-01-classic) | the classical measurements | 0.1.0 | def5678 | 3.11.7 "
        "| A B, 2 cores | uvicorn 0.54 |",
        "| [2026-01-01-cases](2026-01-01-cases) | One \\| other | 0.1.0 | abc1234-dirty | 3.11.7 | A B, 2 cores "
        "| granian 2.8.7 |",
    ]
