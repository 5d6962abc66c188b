"""Does a new connection wake one worker, or all?  python -m benches.herd [--base REVISION]

Requests over a connection each, one after another and sixty-four at a time: CPU of all workers per request, with one
worker and with eight. One after another each request finds all workers asleep, so that any that is woken in vain shows.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tricorn.bench import proc

from benches.harness import load, report
from benches.harness.load import Load
from benches.harness.process import ROOT, DidNotServe, Server, before_other_work, free_port
from benches.versions import checkout

CLOSE = Load(headers=(("Connection", "close"),))
CLASSES: dict[str, tuple[str, list[str]]] = {
    "sync": ("wsgi_app", []),
    "gthread": ("wsgi_app", ["--threads", "4"]),
    "gevent": ("wsgi_app", []),
    "eventlet": ("wsgi_app", []),
    "asgi": ("asgi_app", ["--asgi-loop", "uvloop"]),
    "asgi-asyncio": ("asgi_app", ["--asgi-loop", "asyncio"]),
    "tornado": ("tornado_app", []),
    "aiohttp": ("aiohttp_app", []),
}
"""What a class is given besides its name: an application, and options."""
HEADER = ["class", "at a time", "version", "1 worker µs", "workers µs", "ratio", "lowest-highest"]


class Turn(NamedTuple):
    """Microseconds of CPU per request, of the server with all its processes."""

    one: float
    many: float

    def ratio(self) -> float:
        return self.many / self.one


def main() -> int:
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    trees = {"this": ROOT / "python"}
    if arguments.base:
        trees = {arguments.base: checkout.packages(arguments.base), **trees}
    if arguments.realtime:
        before_other_work()
    rows, data = [], {}
    for worker_class in arguments.classes.split(","):
        for connections in map(int, arguments.connections.split(",")):
            found = measure(worker_class, trees, connections, arguments)
            for version, turns in found.items():
                rows.append(row(worker_class, connections, version, turns))
                data[f"{worker_class}, {connections} at a time, {version}"] = [turn._asdict() for turn in turns]
                print("  " + "  ".join(f"{cell:>12}" for cell in rows[-1]), flush=True)
    title = (
        f"A connection per request, {arguments.workers} workers beside one: {arguments.rounds} rounds of a second each"
    )
    commands = {name: " ".join(command(name, arguments.workers, 0)[1:]) for name in arguments.classes.split(",")}
    report.conclude(arguments, title, commands, report.table(HEADER, rows), data)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.herd", description=__doc__)
    parser.add_argument("--base", help="a revision of this repository to be shown beside this version")
    parser.add_argument("--classes", default=",".join(CLASSES), help="comma separated; all if not given")
    parser.add_argument("--connections", default="1,64", help="open at a time, comma separated")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7, help="of a turn of each server, a second each")
    parser.add_argument("--realtime", action="store_true", help="before all other work of a machine that is not quiet")
    parser.add_argument("--name", default="herd", help="of the folder under benches/runs")
    parser.add_argument("--dry", action="store_true", help="write nothing to benches/runs")
    return parser.parse_args()


def command(name: str, workers: int, port: int) -> list[str]:
    application, options = CLASSES[name]
    return [
        *(sys.executable, "-m", "tricorn", "-b", f"127.0.0.1:{port}", "-w", str(workers), "-k", name.partition("-")[0]),
        *(*options, f"benches.versions.{application}:app"),
    ]


def measure(
    name: str, trees: Mapping[str, Path], connections: int, arguments: argparse.Namespace
) -> dict[str, list[Turn]]:
    """All servers run side by side and take turns: while one is asked the others are idle."""
    with ExitStack() as stack:

        def started(tree: Path, workers: int) -> Server:
            port = free_port()
            environment = {"PYTHONPATH": f"{ROOT}:{tree}"}
            return stack.enter_context(Server(command(name, workers, port), port, environment))

        servers = {version: (started(tree, 1), started(tree, arguments.workers)) for version, tree in trees.items()}
        for pair in servers.values():
            for server in pair:
                cost(server, connections)  # what is made for the first requests only
        turns: dict[str, list[Turn]] = {version: [] for version in trees}
        for number in range(arguments.rounds):
            for version in list(trees) if number % 2 == 0 else reversed(list(trees)):
                one, many = servers[version]
                turns[version].append(Turn(cost(one, connections), cost(many, connections)))
    return turns


def cost(server: Server, connections: int) -> float:
    pids = server.pids()
    before = proc.cpu(pids)
    seen = load.run(CLOSE, server.port, connections, 1)
    spent = (proc.cpu(pids) - before).total
    if seen.errors or not seen.requests:
        raise DidNotServe(f"{seen.errors} errors of {seen.requests} requests")
    return spent / seen.requests * 1e6


def row(name: str, connections: int, version: str, turns: Sequence[Turn]) -> list[str]:
    ratios = sorted(turn.ratio() for turn in turns)
    return [
        *(name, str(connections), version),
        *(
            f"{statistics.median(turn.one for turn in turns):.1f}",
            f"{statistics.median(turn.many for turn in turns):.1f}",
        ),
        *(f"{statistics.median(ratios):.2f}", f"{ratios[0]:.2f}-{ratios[-1]:.2f}"),
    ]


if __name__ == "__main__":
    sys.exit(main())
