"""Renders what attacks by HTTP/2 cost (how-it-works/attacks.md), and what its clients notice (internals/http2.md).

python -m benches.render.http2           writes them
python -m benches.render.http2 --check   fails if they are not what the newest run of benches.http2 has
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from tricorn_bench.bench.report.layout import markdown

from benches.archive import RUNS, unpacked
from benches.harness.servers import shortened
from benches.http2.attacks import ATTACKS
from scripts import rendered

ATTACKED = "docs/how-it-works/attacks.md"
NOTICED = "docs/internals/http2.md"
COLUMNS = {
    ("fair", "p99 ms alone"): "p99 of 50 clients",
    ("fair", "p99 ms beside 100 streams"): "beside 100 streams",
    ("upload", "seconds"): "20 MB, 50 ms away",
    ("idle", "KiB per connection"): "idle connection",
}
NOTHING: dict[str, Any] = {"rounds": {}}
UNITS = {"p99 of 50 clients": "ms", "beside 100 streams": "ms", "20 MB, 50 ms away": "s", "idle connection": "KiB"}


def newest() -> dict[str, tuple[str, dict[str, Any]]]:
    """Of each part the newest run that has it, by name, which begins with the date: its name, and what was measured."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for run in sorted(RUNS.glob("*-http2*"), key=lambda run: run.name):
        with unpacked(run) as folder:
            data = json.loads((folder / "raw.json").read_text())["data"]
        found |= {part: (run.name, measured) for part, measured in data.items()}
    return found


def made_by(names: Iterable[str]) -> str:
    links = (f"[{name}](../../benches/runs/{name}/README.md)" for name in sorted(set(names)))
    return f"Made by `python -m benches.http2` ({', '.join(links)}).\n"


def render(found: Mapping[str, tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """The text of each page's part."""
    name, attacks = found["attacks"]
    parts = [part for part in ("fair", "upload", "idle") if part in found]
    table = noticed({part: found[part][1] for part in parts})
    return {
        ATTACKED: "\n".join([attacked(attacks["rounds"]), "", made_by([name])]),
        NOTICED: "\n".join([table, "", made_by(found[part][0] for part in parts)]),
    }


def attacked(rounds: dict[str, list[dict[str, Any]]]) -> str:
    """Of each attack and server: CPU, and what it grew by."""
    rows = []
    for name in ATTACKS:
        cells = []
        for (found,) in rounds.values():
            cpu, grown = found[f"{name}: CPU ns/byte"], found[f"{name}: MiB"]
            cells.append("does not answer any more" if cpu is None else f"{shortened(cpu)}, {shortened(grown)}")
        rows.append((name, *cells))
    return markdown(("nanoseconds of CPU for each byte, MiB", *rounds), rows)


def noticed(data: dict[str, Any]) -> str:
    names = list(dict.fromkeys(name for part in data.values() for name in part["rounds"]))
    rows = []
    for name in names:
        cells = []
        for part, key in COLUMNS:
            values = [one[key] for one in data.get(part, NOTHING)["rounds"].get(name, [])]
            cells.append(shortened(statistics.median(values)) if values else "–")
        rows.append((name, *cells))
    return markdown(("", *(f"{title}, {UNITS[title]}" for title in COLUMNS.values())), rows)


if __name__ == "__main__":
    script, records = "benches/render/http2.py", "the newest run of benches.http2"
    sys.exit(max(rendered.main(page, script, records, text) for page, text in render(newest()).items()))
