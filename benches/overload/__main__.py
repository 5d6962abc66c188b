"""What is served at three times the capacity, and how soon is the rest refused?  python -m benches.overload --help

Four workers and requests that take 20 ms are a capacity of 200 requests/s. Arrivals are a Poisson stream: half of that,
then three times as much for 30 s, then half of it again. Clients give up after a while, close their connection, and
come back on a new one: what is served after that is wasted work.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

from benches.harness import report, svg
from benches.harness.load import Due, singly
from benches.harness.process import ROOT, become_generator
from benches.harness.servers import Figures, Found, in_turns, serving, spent, table
from benches.one_queue.__main__ import GRANIAN, LINES
from benches.one_queue.measure import GROUP
from benches.overload import judge

PLOT = ROOT / "docs/images/overload.svg"
OPENINGS_PER_SECOND = 500
NUMBERS = {
    "overload": (3.0, "times the capacity"),
    "quiet": (0.5, "times the capacity, before and after"),
    "seconds": (30.0, "of overload"),
    "before": (5.0, "seconds"),
    "after": (5.0, "seconds"),
    "service": (0.020, "seconds that a request takes"),
    "patience": (3.0, "seconds after which a client gives up"),
    "connections": (2000, "more than can be outstanding: the loop stays open"),
    "queue-limit": (15, "of tricorn, for each worker"),
    "queue-timeout": (1.0, "of tricorn, seconds"),
    "seed": (4, ""),
}
COLOURS = {"tricorn-sync": 1, "tricorn-adaptive": 2, "tricorn-unlimited": 3, "gunicorn-gthread": 4, "granian": 5}


def main() -> int:
    arguments = parse()
    if arguments.plot:
        return plot(Path(arguments.plot))
    become_generator()
    phases = judge.Phases(arguments.before, arguments.seconds, arguments.after)
    planned = plan(arguments, phases)
    promised = judge.Promised(arguments.capacity, arguments.queue_timeout + arguments.service)

    def one_round(line: str, found: Found) -> Figures:
        opening = [(number / OPENINGS_PER_SECOND, "/work?us=0") for number in range(arguments.connections)]
        with serving(line, "benches.apps.wsgi:app", found) as server:
            before = spent(server)
            asked = {"timeout": arguments.patience, "keep_alive": not arguments.fresh}
            outcomes, _ = singly(server.port, opening, planned, **asked)
            cpu = spent(server) - before
        figures = judge.judge(outcomes, phases, promised)
        return {**figures, "CPU ms/req": cpu * 1e3 / (len(opening) + len(outcomes))}

    found = in_turns(lines(arguments), arguments, one_round)
    title = f"{arguments.overload:g} times the capacity for {arguments.seconds:g} s"
    settings = {name: value for name, value in vars(arguments).items() if isinstance(value, (int, float))}
    data = {"settings": settings, "servers": {name: rounds[0] for name, rounds in found.rounds.items()}}
    folder = report.conclude(arguments, title, found.commands, table(f"{title}; ms", found), data)
    return 0 if folder is None else plot(folder)


def parse() -> argparse.Namespace:
    parser = report.options("overload", __doc__)
    for name, (default, what) in NUMBERS.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=what)
    parser.add_argument(
        "--fresh", action="store_true", help="new connection for each request instead of persistent ones"
    )
    parser.add_argument(
        "--plot", metavar="FOLDER", help="only draw docs/images/overload.svg again from the raw data there"
    )
    arguments = report.begin(parser)
    arguments.capacity = GROUP / arguments.service
    return arguments


def lines(arguments: argparse.Namespace) -> dict[str, str]:
    """gunicorn and granian have no settings for their queues: they are here to show what that leads to."""
    ours, none = LINES["tricorn-sync"], "--queue-limit 0 --queue-timeout 0"
    return {
        "tricorn-sync": f"{ours} --queue-limit {arguments.queue_limit} --queue-timeout {arguments.queue_timeout:g}",
        "tricorn-unlimited": f"{ours} {none}",
        "tricorn-adaptive": f"{ours} {none} --queue-order adaptive",
        "gunicorn-gthread": LINES["gunicorn-gthread"],
        "granian": GRANIAN,
    }


def plan(arguments: argparse.Namespace, phases: judge.Phases) -> list[Due]:
    random_of = random.Random(arguments.seed)
    planned: list[Due] = []
    path = f"/work?us={round(arguments.service * 1e6)}"
    now = 0.0
    while True:
        load = arguments.overload if phases.begin <= now < phases.end else arguments.quiet
        now += random_of.expovariate(load * arguments.capacity)
        if now >= phases.over:
            return planned
        planned.append((now, path))


def plot(folder: Path) -> int:
    data = json.loads((folder / "raw.json").read_text())["data"]
    chosen = data["settings"]
    end = chosen["before"] + chosen["seconds"]
    marks = sorted({0.0, chosen["before"], chosen["before"] + chosen["seconds"] / 2, end, end + chosen["after"]})
    time = svg.Axis("time", [(mark, f"{mark:g} s") for mark in marks])
    latency = svg.Axis("latency", svg.MILLISECONDS, logarithmic=True)
    panels = [
        ("Served per second", "good_per_second", svg.Axis("answers 200", whole(chosen["capacity"] * 1.5))),
        (
            "Clients that gave up, per second",
            "gave_up_per_second",
            svg.Axis("clients", whole(chosen["overload"] * chosen["capacity"])),
        ),
        ("Latency of what is served (p99)", "admitted_p99_ms", latency),
        ("Time to the refusal of the rest (p99)", "refused_p99_ms", latency),
    ]
    drawn = [
        svg.Panel(title, time, axis, curves(data["servers"], key), band=(chosen["before"], end))
        for title, key, axis in panels
    ]
    PLOT.write_text(svg.page(f"{chosen['overload']:g} times the capacity for {chosen['seconds']:g} s", drawn))
    print(f"drawn: {PLOT.relative_to(ROOT)}")
    return 0


def whole(most: float) -> list[tuple[float, str]]:
    return [(most * step / 6, f"{most * step / 6:g}") for step in range(7)]


def curves(servers: dict[str, Any], key: str) -> list[svg.Line]:
    points = {
        name: [(bucket["at"], bucket[key]) for bucket in result["curve"] if bucket[key] is not None]
        for name, result in servers.items()
        if "curve" in result
    }
    return [svg.Line(name, COLOURS.get(name, 0), several) for name, several in points.items()]


if __name__ == "__main__":
    sys.exit(main())
