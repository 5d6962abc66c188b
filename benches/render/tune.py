"""Renders the results of `tricorn tune` on two pages from the newest run of benches.tune.

python -m benches.render.tune           writes them
python -m benches.render.tune --check   fails if they are not what the newest run has
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benches.archive import RUNS, unpacked
from benches.tune import table
from benches.tune.questions import QUESTIONS
from scripts import rendered

RESULTS = "docs/reference/tune.md"
ANSWERS = "docs/guides/how-many-workers.md"


def newest(runs: Path = RUNS) -> Path:
    """By name, which begins with the date."""
    return max(runs.glob("*-tune"))


def render(run: Path) -> dict[str, str]:
    """The text of each page's part."""
    with unpacked(run) as folder:
        raw = json.loads((folder / "raw.json").read_text())
    rows, environment = raw["data"], raw["environment"]
    machine = f"{environment['cpu']}, {environment['kernel']}, CPython {environment['python'].split()[-1]}"
    cores = f"the server on core {environment[SERVER]}, the load on core {environment[LOAD]}"
    made = (
        f"Made by `python -m benches.tune` ([{run.name}](../../benches/runs/{run.name}/README.md)): {machine}; {cores}."
    )
    return {
        RESULTS: "\n".join([table.summary(rows), "", made]),
        ANSWERS: "\n".join([*_answers(rows), made]),
    }


SERVER, LOAD = "server's cores", "load generator's cores"


def _answers(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    by_case = {row["case"]: row for row in rows}
    lines = []
    for question in QUESTIONS:
        if row := by_case.get(question.case):
            output = f"$ {row['command']}\n{row['text'].strip()}"
            lines += [f"## {question.heading}", "", question.answer, "", "```text", output, "```", ""]
    return lines


if __name__ == "__main__":
    script, records = "benches/render/tune.py", "the newest run of benches.tune"
    sys.exit(max(rendered.main(page, script, records, text) for page, text in render(newest()).items()))
