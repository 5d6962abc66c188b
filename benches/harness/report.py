"""Options that all benchmarks have; raw data as JSON and a page in Markdown, in benches/runs/<date>-<name>/."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any

from tricorn_bench.bench.machine import Cores, describe
from tricorn_bench.bench.report.layout import markdown as table
from tricorn_bench.bench.servers import KINDS

from benches.harness import servers
from benches.harness.process import BENCH_PYTHON, ROOT, become_generator, before_other_work
from benches.harness.servers import Found, installed

__all__ = ["begin", "conclude", "environment", "measure", "options", "table"]


def options(name: str, doc: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m benches.{name}", description=doc)
    parser.add_argument("--servers", help="beginnings of names, comma separated")
    parser.add_argument("--name", default=name.replace("_", "-"), help="of the folder under benches/runs")
    parser.add_argument("--dry", action="store_true", help="write nothing to benches/runs")
    parser.add_argument("--realtime", action="store_true", help="before all other work of a machine that is not quiet")
    return parser


def begin(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Reads the options. A signal that ends the program leaves its `with` blocks, which stop servers."""
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    if arguments.realtime:
        before_other_work()
    return arguments


def measure(
    arguments: argparse.Namespace, title: str, parts: Mapping[str, tuple[str, Callable[[argparse.Namespace], Found]]]
) -> None:
    """Measures those of the parts that `--parts` names, each a table under its title, and keeps the run."""
    become_generator()
    tables, data, commands = [], {}, {}
    for part in arguments.parts:
        print(f"{part}:", flush=True)
        heading, measured = parts[part]
        found = measured(arguments)
        tables.append(servers.table(heading.format(count=arguments.count), found))
        data[part] = servers.raw(found)
        commands.update(found.commands)
    conclude(arguments, title, commands, "\n\n".join(tables), data)


def conclude(
    arguments: argparse.Namespace, title: str, commands: Mapping[str, str], body: str, data: Any
) -> Path | None:
    """Shows the page of a run and keeps it under `--name`, but for a `--dry` one. Where it is kept."""
    print(f"\n{body}")
    if arguments.dry:
        return None
    folder = _unused(ROOT / "benches" / "runs" / f"{time.strftime('%Y-%m-%d')}-{arguments.name}")
    folder.mkdir(parents=True)
    described = environment()
    raw = {"environment": described, "commands": dict(commands), "data": data}
    (folder / "raw.json").write_text(json.dumps(raw, indent=1) + "\n")
    page = [
        f"# {title}",
        "",
        body,
        "",
        "## Environment",
        "",
        *[f"* {key}: {value}" for key, value in described.items()],
    ]
    page += ["", "## Commands", "", *[f"* {key}: `{value}`" for key, value in commands.items()], ""]
    (folder / "README.md").write_text("\n".join(page))
    print(f"\nwritten to {folder.relative_to(ROOT)}; to keep it, see benches/runs/README.md")
    return folder


def _unused(folder: Path) -> Path:
    """`folder`, or one with a number behind its name if there is a run of that name."""
    names = chain([folder.name], (f"{folder.name}-{number}" for number in count(2)))
    return next(path for path in map(folder.with_name, names) if not path.exists())


def environment() -> dict[str, str]:
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    peers = {kind.name: installed(kind, str(BENCH_PYTHON)) for kind in KINDS} if BENCH_PYTHON.exists() else {}
    found = describe(Cores.split(sorted(os.sched_getaffinity(0))))
    return {**found, "commit": commit.stdout.strip(), **{name: version for name, version in peers.items() if version}}
