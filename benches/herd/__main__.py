"""Does a new connection wake one worker, or all?  python -m benches.herd [--base REVISION]

Requests over a connection each: CPU of all workers per request, and how often threads waited, with one worker and
with eight.

* rested: the next connection comes a millisecond after the last answer. It finds all workers asleep, so that any that
  is woken in vain shows.
* one: it comes at once. The worker that answered is not back in its wait, and another one takes it.
* many: sixty-four at a time. A worker finds an eighth of the connections at each look.

The last two show what it costs to spread work over more processes than the server has cores: each has its own memory to
bring into the processor's caches, and fewer events at a time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from benches.harness import report
from benches.harness.process import ROOT, Server
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
LOADS: Mapping[str, Mapping[str, Any]] = {
    "rested": {"connections": 1, "think": (0.001, 0.001)},
    "one": {"connections": 1},
    "many": {"connections": 64},
}
HEADER = [
    "class",
    "load",
    "version",
    "1 worker µs",
    "workers µs",
    "ratio",
    "lowest-highest",
    "waits with 1",
    "with all",
]


class Cost(NamedTuple):
    """Of a request: microseconds of CPU, and waits of all threads of the server."""

    cpu_us: float
    waits: float


Turn = tuple[Cost, Cost]
"""Of one worker and of many."""


def main() -> int:
    arguments = parse()
    trees = {"this": ROOT / "python"}
    if arguments.base:
        trees = {arguments.base: checkout.packages(arguments.base), **trees}
    rows, data, commands = [], {}, {}
    for name in arguments.classes.split(","):
        application, line = CLASSES[name]
        commands[name] = f"tricorn {line} -w {arguments.workers}"
        for load in arguments.loads.split(","):
            case = Case("close", more={"keep_alive": False, **LOADS[load]})
            pairing = Pairing(line, f"benches.apps.{application}:app", [Side(tree) for tree in trees.values()], case)
            for version, turns in measure(pairing, trees, arguments).items():
                rows.append(row(name, load, version, turns))
                data[f"{name}, {load}, {version}"] = turns
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
    parser.add_argument("--loads", default=",".join(LOADS), help="comma separated; all if not given")
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
                one, many = (cost(pairing.case, server) for server in servers[version])
                turns[version].append((one, many))
    return turns


def cost(case: Case, server: Server) -> Cost:
    before = waits(server)
    turn = case.cost(server)
    return Cost(turn.cpu_us, (waits(server) - before) / turn.requests)


def waits(server: Server) -> int:
    """How often threads of the server have given their processor up to wait (proc_pid_status(5))."""
    return sum(waits_of(task) for pid in server.pids() for task in Path(f"/proc/{pid}/task").iterdir())


def waits_of(task: Path) -> int:
    try:
        status = (task / "status").read_text()
    except OSError:
        return 0  # the thread has ended
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def row(name: str, load: str, version: str, turns: Sequence[Turn]) -> list[str]:
    ratios = sorted(many.cpu_us / one.cpu_us for one, many in turns)
    cpu, waited = (
        [f"{statistics.median(getattr(turn[which], field) for turn in turns):.{digits}f}" for which in (0, 1)]
        for field, digits in (("cpu_us", 1), ("waits", 2))
    )
    spread = f"{ratios[0]:.2f}-{ratios[-1]:.2f}"
    return [name, load, version, *cpu, f"{statistics.median(ratios):.2f}", spread, *waited]


if __name__ == "__main__":
    sys.exit(main())
