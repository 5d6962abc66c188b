"""Renders the classical measurements in docs/how-it-works/performance.md from the runs of benches.classic.

Each table is that of the newest run that has it.

python -m benches.render.performance           writes it
python -m benches.render.performance --check   fails if it is not what the runs have
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tricorn_bench.bench import result as results
from tricorn_bench.bench.figures import BY_KEY, failed
from tricorn_bench.bench.report import layout, tables, text
from tricorn_bench.bench.result import Cell, Result

from benches.archive import RUNS, unpacked
from benches.classic.table import LINES, UNLIMITED
from scripts import rendered

COLUMNS = {"memory": ("worker", "uss", "pss", "rss", "rate", "cpu")}
"""What a table without levels shows; the others show `USUAL`."""
USUAL = ("rate", "cpu", "p50", "p95", "p99", "errors", "worker")
NONE_YET = "No run is in the repository yet: `make bench NAME=classic` makes one, and this page.\n"


def newest(runs: Path) -> dict[str, tuple[Path, Result]]:
    """Returns the newest run that has each measurement. The names of runs begin with their dates."""
    found: dict[str, tuple[Path, Result]] = {}
    for run in sorted(runs.glob("*-classic")):
        with unpacked(run) as folder:
            found |= {path.parent.name: (run, results.read(path)) for path in folder.glob("*/result.json")}
    return found


def render(runs: Mapping[str, tuple[Path, Result]]) -> str:
    found = {line: runs[line.name] for line in LINES if line.name in runs}
    if not found:
        return NONE_YET
    parts = [*_runs(found.values()), ""]
    for line, (run, result) in found.items():
        parts += [f"### {line.question}", "", _table(line.name, result), ""]
        if result["axis"] == "workers":
            parts += [f"![Throughput over workers](../../benches/runs/{run.name}/{line.name}/charts/rate.svg)", ""]
        parts += [f"* {_short(remark)}" for remark in text.remarks(result)]
        where = f"`python -m benches.classic --only {line.name}`, [{run.name}](../../benches/runs/{run.name})"
        parts += [f"* Load: {result['load']} Measured {result['made'].split()[0]}: {where}.", ""]
    return "\n".join(parts).rstrip() + "\n"


def _runs(found: Collection[tuple[Path, Result]]) -> Iterator[str]:
    """Yields the machine and the versions of each run that has a table, the newest first."""
    for run in sorted({run for run, _ in found}, reverse=True):
        results = [result for path, result in found if path == run]
        machine = ", ".join(f"{key} {value}" for key, value in results[0]["machine"].items())
        used = sorted({(one["server"], one["version"]) for each in results for one in each["configurations"]})
        servers = ", ".join(f"{server} {version}" for server, version in used if version and server != "tricorn")
        which = "table" if len(results) == 1 else "tables"
        yield f"* [{run.name}](../../benches/runs/{run.name}), {len(results)} {which}: {machine}. Servers: {servers}."


def _table(name: str, result: Result) -> str:
    if result["axis"] is None:
        table = tables.main_table(result, COLUMNS.get(name, USUAL))
        return layout.markdown(table.header, [(_short(row[0]), *row[1:]) for row in table.rows])
    families = {one["name"]: one["family"] for one in result["configurations"]}
    levels = sorted({cell["at"] or 0.0 for cell in result["cells"]})
    cells = {(families[cell["configuration"]], cell["at"]): cell for cell in result["cells"]}
    shown = _rate if result["axis"] == "workers" else _rate_and_latency
    rows = [
        (_short(family), *(shown(cells[family, level]) if (family, level) in cells else "–" for level in levels))
        for family in dict.fromkeys(families[cell["configuration"]] for cell in result["cells"])
    ]
    return layout.markdown((f"server \\ {result['axis']}", *(f"{level:,g}" for level in levels)), rows)


def _rate(cell: Cell) -> str:
    rate = BY_KEY["rate"]
    return rate.shown(rate.read(cell["rounds"]))


def _rate_and_latency(cell: Cell) -> str:
    """`98/s, 1.01 s`: good answers, the 95th percentile; errors, and clients without an answer at the end, if any."""
    waiting = sum(one["load"].get("unanswered", 0) for one in cell["rounds"])
    errors = sum(map(failed, cell["rounds"]))
    slow = BY_KEY["p95"].read(cell["rounds"]) or 0.0
    told = [f"{_rate(cell)}/s", f"{slow / 1e3:.2f} s" if slow >= 1e3 else f"{slow:.0f} ms"]
    told += [f"**{errors:,} errors**"] if errors else []
    told += [f"{waiting:,} waiting"] if waiting else []
    return ", ".join(told)


def _short(name: str) -> str:
    """A configuration, or a sentence with one, without what all have and a table has no room for."""
    return name.replace(f" {UNLIMITED}", "").replace(" -c benches/classic/psycogreen_conf.py", "")


if __name__ == "__main__":
    sys.exit(
        rendered.main(
            "docs/how-it-works/performance.md",
            "benches/render/performance.py",
            "the classical runs",
            render(newest(RUNS)),
        )
    )
