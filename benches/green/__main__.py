"""What does a request cost under greenlets, and what does one that waits?  python -m benches.green --help

Four parts. hello: a request that does not wait. sleepers: ten thousand that wait at once in one worker. database: two
hundred rows of PostgreSQL, a connection for each request. bodies: a healthy client beside five hundred that send a
byte a second. Servers take turns, round after round; a figure is the median of its rounds.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benches.end_to_end import rounds as hello_rounds
from benches.end_to_end.cases import CASES
from benches.end_to_end.servers import SERVERS
from benches.end_to_end.turns import in_turns, wanted
from benches.green import database, sleepers
from benches.green.kinds import DATABASE, SLEEPING
from benches.harness import load, parts
from benches.harness.parts import Commands, Part
from benches.harness.process import DidNotServe, become_generator
from benches.slow_clients import measure as slow_clients

HELLO = ("tricorn-sync", "tricorn-gevent", "tricorn-eventlet", "gunicorn-gevent")
BODIES = ("tricorn-gevent", "tricorn-eventlet", "gunicorn-gevent")


def main() -> int:
    parser = parts.options("benches.green", __doc__, PARTS, name="green")
    arguments = parts.parse(parser, PARTS)
    return parts.run("Greenlet workers", arguments, PARTS)


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
    commands["load"] = load.burst_command(database.REQUESTS, database.CLIENTS, database.PAGE)
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


PARTS: dict[str, Part] = {
    "hello": hello,
    "sleepers": asleep,
    "database": rows,
    "bodies": bodies,
}


if __name__ == "__main__":
    sys.exit(main())
