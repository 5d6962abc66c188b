"""Benchmarks of several parts: their options, and the page of what was found."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from benches.harness import environment, report
from benches.harness.process import ROOT, before_other_work

Commands = dict[str, str]
Part = Callable[[argparse.Namespace, Commands], tuple[str, Any]]
"""What is to be printed, and what is to be kept, of a part; it adds the commands that it ran."""


def options(prog: str, doc: str | None, parts: Mapping[str, Part], *, name: str) -> argparse.ArgumentParser:
    """The options that all have; `name` is that of the benchmark's folder."""
    parser = argparse.ArgumentParser(prog=f"python -m {prog}", description=doc)
    parser.add_argument("--parts", default=",".join(parts), help="comma separated; all if not given")
    parser.add_argument("--servers", help="beginnings of names, comma separated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of measured load in a round")
    parser.add_argument("--connections", type=int, default=64, help="of the load generators")
    parser.add_argument("--sleepers", type=int, default=10_000)
    parser.add_argument("--realtime", action="store_true", help="before all other work of a machine that is not quiet")
    parser.add_argument("--name", default=name, help="of the folder under benches/runs")
    parser.add_argument("--dry", action="store_true", help="write nothing to benches/runs")
    return parser


def parse(parser: argparse.ArgumentParser, parts: Mapping[str, Part]) -> argparse.Namespace:
    """What was asked for; ends the program if there is no such part."""
    arguments = parser.parse_args()
    if unknown := set(arguments.parts.split(",")) - set(parts):
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(parts)}")
    return arguments


def run(title: str, arguments: argparse.Namespace, parts: Mapping[str, Part]) -> int:
    """Measures part after part; what there is so far is on the page after each."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    commands: Commands = {}
    pages: list[str] = []
    data: dict[str, Any] = {}
    cores = os.sched_getaffinity(0)
    if arguments.realtime:
        before_other_work()
    for name in arguments.parts.split(","):
        os.sched_setaffinity(0, cores)
        page, data[name] = parts[name](arguments, commands)
        print(f"\n{page}\n", flush=True)
        pages.append(page)
        if not arguments.dry:
            described = environment.describe()
            folder = report.write(arguments.name, title, described, commands, "\n\n".join(pages), data)
    if not arguments.dry:
        print(f"written to {folder.relative_to(ROOT)}")
    return 0
