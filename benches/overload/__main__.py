"""What is served at three times the capacity, and how soon is the rest refused?  python -m benches.overload --help

Four workers and requests that take 20 ms are a capacity of 200 requests/s. Arrivals are a Poisson stream: half of that,
then three times as much for 30 s, then half of it again. Clients give up after a while, close their connection, and
come back on a new one: what is served after that is work for nobody.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tricorn.bench import proc

from benches.harness import report
from benches.harness.open_loop import Clients, Outcome, Planned
from benches.harness.process import ROOT, DidNotServe, Server, become_generator, free_port
from benches.one_queue.servers import GRANIAN, PATIENT, SERVERS_OF_A_GROUP, SYNC, Kind
from benches.overload import judge, pages

PLOT = ROOT / "docs" / "overload.svg"
OPENINGS_PER_SECOND = 500


def main() -> int:
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments.plot:
        return plot(Path(arguments.plot))
    become_generator(realtime=arguments.realtime)
    phases = judge.Phases(arguments.before, arguments.seconds, arguments.after)
    planned, services = plan(arguments, phases)
    commands: dict[str, str] = {}
    data: dict[str, Any] = {"settings": settings(arguments), "servers": {}}
    for kind in kinds(arguments):
        if arguments.servers and not kind.name.startswith(tuple(arguments.servers.split(","))):
            continue
        try:
            if reason := kind.why_not():
                raise DidNotServe(reason)
            outcomes, cpu = measure(kind, arguments, commands, planned)
            result = judge.judge(outcomes, services, phases, arguments.capacity, arguments.queue_timeout)
            result["cpu_ms_per_request"] = cpu * 1e3 / len(outcomes)
        except DidNotServe as reason:
            result = {"absent": str(reason)}
        data["servers"][kind.name] = result
        print(f"  {kind.name}: {pages.short(result)}", flush=True)
    title = f"{arguments.overload:g} times the capacity for {arguments.seconds:g} s"
    folder = report.conclude(arguments, title, commands, pages.render(data), data)
    if folder is not None:
        plot(folder)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.overload", description=__doc__)
    parser.add_argument("--servers", help="beginnings of names, comma separated")
    parser.add_argument("--overload", type=float, default=3, help="times the capacity")
    parser.add_argument("--quiet", type=float, default=0.5, help="times the capacity, before and after")
    parser.add_argument("--seconds", type=float, default=30, help="of overload")
    parser.add_argument("--before", type=float, default=5, help="seconds")
    parser.add_argument("--after", type=float, default=5, help="seconds")
    parser.add_argument("--service", type=float, default=0.020, help="seconds that a request takes")
    parser.add_argument(
        "--exponential", action="store_true", help="service times are exponential instead of all the same"
    )
    parser.add_argument("--patience", type=float, default=3, help="seconds after which a client gives up")
    parser.add_argument(
        "--connections", type=int, default=2000, help="more than can be outstanding: the loop stays open"
    )
    parser.add_argument("--fresh", action="store_true", help="a connection for each request instead of persistent ones")
    parser.add_argument("--queue-limit", type=int, default=15, help="of tricorn, for each worker")
    parser.add_argument("--queue-timeout", type=float, default=1, help="of tricorn, seconds")
    parser.add_argument(
        "--tricorn-options", default="", help='further options for tricorn, such as "--queue-order adaptive"'
    )
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--plot", metavar="FOLDER", help="only draw docs/overload.svg again from the raw data there")
    parser.add_argument("--name", default="overload", help="of the folder under benches/runs")
    parser.add_argument("--realtime", action="store_true", help="before all other work of a machine that is not quiet")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    arguments.capacity = SERVERS_OF_A_GROUP / arguments.service
    return arguments


def settings(arguments: argparse.Namespace) -> dict[str, Any]:
    names = (
        "overload",
        "quiet",
        "seconds",
        "before",
        "after",
        "service",
        "exponential",
        "patience",
        "connections",
        "fresh",
    )
    return {name: getattr(arguments, name) for name in (*names, "queue_limit", "queue_timeout", "seed", "capacity")}


def kinds(arguments: argparse.Namespace) -> list[Kind]:
    """gunicorn and granian have no settings for their queues: they are here to show what that leads to."""
    limits = f"--queue-limit {arguments.queue_limit} --queue-timeout {arguments.queue_timeout:g}"
    ours, none = f"tricorn {SYNC} {arguments.tricorn_options}", unlimited()
    return [
        Kind("tricorn-sync", f"{ours} {limits}", needs="--queue-limit"),
        Kind("tricorn-unlimited", f"{ours} {none}"),
        Kind("tricorn-adaptive", f"{ours} {none} --queue-order adaptive", needs="--queue-order"),
        Kind("gunicorn-gthread", f"gunicorn gthread -w 4 --threads 1 {PATIENT}"),
        GRANIAN,
    ]


def unlimited() -> str:
    # A version without the settings is one without limits.
    has_limits = Kind("", "tricorn", needs="--queue-limit").why_not() is None
    return "--queue-limit 0 --queue-timeout 0" if has_limits else ""


def plan(arguments: argparse.Namespace, phases: judge.Phases) -> tuple[list[Planned], list[float]]:
    random_of = random.Random(arguments.seed)
    planned: list[Planned] = []
    services: list[float] = []
    now = 0.0
    while True:
        load = arguments.overload if phases.begin <= now < phases.end else arguments.quiet
        now += random_of.expovariate(load * arguments.capacity)
        if now >= phases.over:
            return planned, services
        service = random_of.expovariate(1 / arguments.service) if arguments.exponential else arguments.service
        services.append(round(service * 1e6) / 1e6)
        planned.append(Planned(now, f"/work?us={round(service * 1e6)}", random_of.random()))


def measure(
    kind: Kind, arguments: argparse.Namespace, commands: dict[str, str], planned: list[Planned]
) -> tuple[list[Outcome], float]:
    """The outcomes, and the CPU seconds of the server."""
    port = free_port()
    command = kind.command(port)
    commands[kind.name] = report.shown(command, port)
    openings = [Planned(number / OPENINGS_PER_SECOND, "/work?us=0", 0.0) for number in range(arguments.connections)]
    fields = b"Connection: close\r\n" if arguments.fresh else b""
    with Server(command, port) as server, Clients(port, arguments.connections, arguments.patience, fields) as clients:
        opened = Counter(outcome.status for outcome in clients.open_all(openings))
        if set(opened) != {200}:
            raise DidNotServe(f"answered {dict(opened)} while connections were opened")
        pids = server.pids()
        before = proc.cpu(pids)
        outcomes = clients.run(planned)
        return outcomes, (proc.cpu(pids) - before).total


def plot(folder: Path) -> int:
    PLOT.write_text(pages.draw(json.loads((folder / "raw.json").read_text())["data"]))
    print(f"drawn: {PLOT.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
