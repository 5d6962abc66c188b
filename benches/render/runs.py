"""Renders benches/runs/README.md: every run of a benchmark that is kept, with the versions it was made with.

python -m benches.render.runs           writes it
python -m benches.render.runs --check   fails if it is not what the runs say
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benches.archive import runs, unpacked
from scripts import rendered

COMMIT = re.compile(r"(\S+) \((\w+(?:-dirty)?)\)")
"""As runs of the first days have it: the version, and in parentheses the commit."""
NO_SERVERS = frozenset(
    {"tricorn", "commit", "python", "cpu", "memory", "kernel", "rust", "wrk", "cc"}
    | {"server's cores", "load generator's cores", "load average before", "open files"}
)
"""What a run says of its machine that is no version of a package beside tricorn."""


class Run(NamedTuple):
    folder: str
    """Its name begins with the date."""
    title: str
    tricorn: str
    commit: str
    python: str
    cpu: str
    peers: Mapping[str, str]


def read(run: Path) -> Run:
    with unpacked(run) as folder:
        environment, title, peers = _single(folder) or _several(folder)
    version, commit = environment.get("tricorn", "–"), environment.get("commit", "–")
    if found := COMMIT.fullmatch(version):
        version, commit = found.groups()
    python = environment.get("python", "–").removeprefix("CPython ")
    cpu = environment.get("cpu", "–").replace("(R)", "")
    return Run(run.name, title or "the classical measurements", version, commit, python, cpu, peers)


def _single(folder: Path) -> tuple[dict[str, str], str, dict[str, str]] | None:
    """A run of one benchmark: a page and raw.json."""
    path = folder / "raw.json"
    if not path.exists():
        return None
    environment: dict[str, str] = json.loads(path.read_text())["environment"]
    heading = (folder / "README.md").read_text().partition("\n")[0].removeprefix("# ")
    return environment, heading, {name: text for name, text in environment.items() if name not in NO_SERVERS}


def _several(folder: Path) -> tuple[dict[str, str], str, dict[str, str]]:
    """A run of a table of `tricorn bench` commands: a result for each."""
    environment: dict[str, str] = {}
    peers: dict[str, str] = {}
    for path in sorted(folder.glob("*/result.json")):
        result = json.loads(path.read_text())
        environment = environment or result["machine"]
        used = ((one["server"], one["version"]) for one in result["configurations"])
        peers |= {server: version for server, version in used if version and server != "tricorn"}
    return environment, "", peers


def render(folders: list[Path]) -> str:
    found = [read(folder) for folder in folders]
    rows = [
        "| Run | What | tricorn | Commit | CPython | Processor | Beside it |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in sorted(found, key=lambda run: run.folder, reverse=True):
        peers = ", ".join(f"{name} {version}" for name, version in sorted(run.peers.items())) or "–"
        title = run.title.replace("|", "\\|")
        link = f"[{run.folder}]({run.folder})"
        rows.append(f"| {' | '.join((link, title, run.tricorn, run.commit, run.python, run.cpu, peers))} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(rendered.main("benches/runs/README.md", "benches/render/runs.py", "the runs beside it", render(runs())))
