"""What does a request cost under greenlets, and what does one that waits?  python -m benches.green --help

Four parts. hello: a request that does not wait. sleepers: ten thousand that wait at once in one worker. database: two
hundred rows of PostgreSQL, a connection for each request. bodies: a healthy client beside five hundred that send a
byte a second. Servers take turns, round after round; a figure is the median of its rounds.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from benches.end_to_end import rounds as hello_rounds
from benches.end_to_end.cases import CASES
from benches.end_to_end.servers import SERVERS
from benches.end_to_end.turns import in_turns, wanted
from benches.green import database, sleepers
from benches.green.kinds import DATABASE, SLEEPING
from benches.harness import environment, hey, report, wrk
from benches.harness.process import ROOT, DidNotServe, become_generator, before_other_work
from benches.slow_clients import measure as slow_clients

HELLO = ("tricorn-sync", "tricorn-gevent", "tricorn-eventlet", "gunicorn-gevent")
BODIES = ("tricorn-gevent", "tricorn-eventlet", "gunicorn-gevent")

Commands = dict[str, str]


def main() -> int:
    arguments = parse()
    wrk.need()
    hey.need()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    commands: Commands = {}
    pages: list[str] = []
    data: dict[str, Any] = {}
    cores = os.sched_getaffinity(0)
    if arguments.realtime:
        before_other_work()
    for name in arguments.parts.split(","):
        os.sched_setaffinity(0, cores)
        page, data[name] = PARTS[name](arguments, commands)
        print(f"\n{page}\n", flush=True)
        pages.append(page)
        if not arguments.dry:
            described = environment.describe()
            folder = report.write(arguments.name, "Greenlet workers", described, commands, "\n\n".join(pages), data)
    if not arguments.dry:
        print(f"written to {folder.relative_to(ROOT)}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.green", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="comma separated; all if not given")
    parser.add_argument("--servers", help="beginnings of names, comma separated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of measured load in a round of hello")
    parser.add_argument("--connections", type=int, default=64, help="of wrk in the part hello")
    parser.add_argument("--sleepers", type=int, default=10_000)
    parser.add_argument("--realtime", action="store_true", help="before all other work of a machine that is not quiet")
    parser.add_argument("--name", default="green", help="of the folder under benches/runs")
    parser.add_argument("--dry", action="store_true", help="write nothing to benches/runs")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts.split(",")) - set(PARTS):
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return arguments


def hello(arguments: argparse.Namespace, commands: Commands) -> tuple[str, Any]:
    """As `make bench` does it, with fewer servers."""
    case = next(case for case in CASES if case.name == "hello")
    chosen = wanted([kind for kind in SERVERS if kind.name in HELLO], arguments)
    seen, absent = hello_rounds.measure(case, chosen, arguments, commands)
    return hello_rounds.render(case, seen, absent), hello_rounds.raw(seen, absent)


def asleep(arguments: argparse.Namespace, commands: Commands) -> tuple[str, Any]:
    become_generator(realtime=False)
    count = arguments.sleepers
    seen, absent = in_turns(SLEEPING, arguments, lambda kind: sleepers.one_round(kind, count, commands))
    return sleepers.render(seen, absent, count), sleepers.raw(seen, absent)


def rows(arguments: argparse.Namespace, commands: Commands) -> tuple[str, Any]:
    with database.database() as where:
        seen, absent = in_turns(DATABASE, arguments, lambda kind: database.one_round(kind, where, commands))
    commands["hey"] = report.shown(hey.command(database.REQUESTS, database.CLIENTS, database.PAGE, "PORT"), 0)
    return database.render(seen, absent), database.raw(seen, absent)


def bodies(arguments: argparse.Namespace, commands: Commands) -> tuple[str, Any]:
    become_generator(realtime=False)
    part = argparse.Namespace(heads=0, bodies=500, seconds=5 * arguments.seconds / 1.5)
    results: dict[str, Any] = {}
    for kind in wanted([kind for kind in slow_clients.KINDS if kind.name in BODIES], arguments):
        try:
            results[kind.name] = slow_clients.measure(kind, part, commands)
        except DidNotServe as reason:
            results[kind.name] = {"absent": str(reason)}
    return slow_clients.render(results, part), results


PARTS: dict[str, Callable[[argparse.Namespace, Commands], tuple[str, Any]]] = {
    "hello": hello,
    "sleepers": asleep,
    "database": rows,
    "bodies": bodies,
}


if __name__ == "__main__":
    sys.exit(main())
