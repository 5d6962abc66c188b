"""Does a new connection wake one worker, or all?  python -m benches.herd [--base REVISION]

Requests over a connection each, one after another and sixty-four at a time: CPU of all workers per request, with one
worker and with eight. One after another each request finds all workers asleep, so that any that is woken in vain shows.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from benches.harness import report
from benches.harness.process import ROOT
from benches.versions import checkout
from benches.versions.pairs import Case, Pairing, Side

CLASSES = {
    "sync": ("wsgi", "sync"),
    "gthread": ("wsgi", "gthread --threads 4"),
    "gevent": ("wsgi", "gevent"),
    "eventlet": ("wsgi", "eventlet"),
    "asgi": ("asgi", "asgi --asgi-loop uvloop"),
    "asgi-asyncio": ("asgi", "asgi --asgi-loop asyncio"),
    "tornado": ("tornado", "tornado"),
    "aiohttp": ("aiohttp", "aiohttp"),
}
"""An application, and a configuration without its number of workers."""
HEADER = ["class", "at a time", "version", "1 worker µs", "workers µs", "ratio", "lowest-highest"]

Turn = tuple[float, float]
"""Microseconds of CPU per request, of one worker and of many."""


def main() -> int:
    arguments = parse()
    trees = {"this": ROOT / "python"}
    if arguments.base:
        trees = {arguments.base: checkout.packages(arguments.base), **trees}
    rows, data, commands = [], {}, {}
    for name in arguments.classes.split(","):
        application, line = CLASSES[name]
        commands[name] = f"tricorn {line} -w {arguments.workers}"
        for connections in map(int, arguments.connections.split(",")):
            case = Case("close", more={"keep_alive": False, "connections": connections})
            pairing = Pairing(line, f"benches.apps.{application}:app", [Side(tree) for tree in trees.values()], case)
            for version, turns in measure(pairing, trees, arguments).items():
                rows.append(row(name, connections, version, turns))
                data[f"{name}, {connections} at a time, {version}"] = turns
                print("  " + "  ".join(f"{cell:>12}" for cell in rows[-1]), flush=True)
    title = (
        f"A connection per request, {arguments.workers} workers beside one: {arguments.rounds} rounds of a second each"
    )
    report.conclude(arguments, title, commands, report.table(HEADER, rows), data)
    return 0


def parse() -> argparse.Namespace:
    parser = report.options("herd", __doc__)
    parser.add_argument("--base", help="a revision of this repository to be shown beside this version")
    parser.add_argument("--classes", default=",".join(CLASSES), help="comma separated; all if not given")
    parser.add_argument("--connections", default="1,64", help="open at a time, comma separated")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7, help="of a turn of each server, a second each")
    return report.begin(parser)


def measure(pairing: Pairing, trees: Mapping[str, Path], arguments: argparse.Namespace) -> dict[str, list[Turn]]:
    """All servers run side by side and take turns: while one is asked the others are idle."""
    with ExitStack() as stack:
        sizes = [pairing._replace(line=f"{pairing.line} -w {workers}") for workers in (1, arguments.workers)]
        servers = {version: [one.started(Side(tree), 0, stack) for one in sizes] for version, tree in trees.items()}
        for pair in servers.values():
            for server in pair:
                pairing.case.cost(server)  # what is made for the first requests only
        turns: dict[str, list[Turn]] = {version: [] for version in trees}
        for number in range(arguments.rounds):
            for version in list(trees) if number % 2 == 0 else reversed(list(trees)):
                one, many = (pairing.case.cost(server).cpu_us for server in servers[version])
                turns[version].append((one, many))
    return turns


def row(name: str, connections: int, version: str, turns: Sequence[Turn]) -> list[str]:
    ratios = sorted(many / one for one, many in turns)
    medians = (f"{statistics.median(costs):.1f}" for costs in zip(*turns, strict=True))
    return [
        *(name, str(connections), version, *medians),
        *(f"{statistics.median(ratios):.2f}", f"{ratios[0]:.2f}-{ratios[-1]:.2f}"),
    ]


if __name__ == "__main__":
    sys.exit(main())
