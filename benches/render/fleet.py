"""Renders the tables of the simulated fleet on two pages of docs/how-it-works, from the newest run of benches.fleet.

python -m benches.render.fleet           writes them
python -m benches.render.fleet --check   fails if they are not what the newest run has
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benches.archive import RUNS, unpacked
from benches.fleet import tables
from scripts import rendered

QUEUE = "docs/how-it-works/the-queue-inside-the-host.md"
METRIC = "docs/how-it-works/which-metric-to-scale-on.md"


def newest() -> Path:
    """By name, which begins with the date."""
    return max(RUNS.glob("*-fleet"))


def render(run: Path) -> dict[str, str]:
    """The text of each page's part."""
    with unpacked(run) as folder:
        rows = json.loads((folder / "raw.json").read_text())["data"]
    made = f"Made by `python -m benches.fleet` ([{run.name}](../../benches/runs/{run.name}/README.md)).\n"
    queue = [
        *("Mean wait / 99th percentile in ms, by the load of the fleet:", "", tables.waits(rows["waits"]), ""),
        *(tables.claim(rows["waits"]), ""),
        *("A tenth of the hosts takes twice as long (one queue a host):", "", tables.slow(rows["slow"]), "", made),
    ]
    metric = []
    for hour, title in tables.HOURS.items():
        metric += [f"**{title}:**", "", tables.scale(rows["scale"], hour), ""]
    return {
        QUEUE: "\n".join(queue),
        METRIC: "\n".join([*metric, "Targets by the size of a pod:", "", tables.targets(), "", made]),
    }


if __name__ == "__main__":
    script, records = "benches/render/fleet.py", "the newest run of benches.fleet"
    sys.exit(max(rendered.main(page, script, records, text) for page, text in render(newest()).items()))
