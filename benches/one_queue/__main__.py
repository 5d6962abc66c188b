"""Is it one queue? Measured waits beside those that theory gives.  python -m benches.one_queue --help

Four requests can be served at once; each takes as long as its client says, exponential with a mean of 20 ms (it sleeps,
so that one core suffices). Arrivals are a Poisson stream over persistent connections, each taking a free one at random.
The same trace goes to every server and to two simulations, M/M/4 and 4 x M/M/1, so that what chance does to a tail it
does to all of them. Wait: from when the request was due to its answer, less the service time asked for.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
from pathlib import Path
from typing import Any

from benches.harness import report
from benches.harness.open_loop import Clients
from benches.harness.process import ROOT, DidNotServe, Server, become_generator, free_port
from benches.one_queue import measure, one_slow, pages, theory
from benches.one_queue.servers import KINDS, SERVERS_OF_A_GROUP, Kind

PLOT = ROOT / "docs" / "one-queue.svg"
WHERE_THEORY_IS_LONG = 2_000_000


def main() -> int:
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments.theory:
        return check_theory(arguments)
    if arguments.plot:
        return plot(Path(arguments.plot))
    become_generator(realtime=arguments.realtime)
    kinds = [
        kind for kind in KINDS if arguments.servers is None or kind.name.startswith(tuple(arguments.servers.split(",")))
    ]
    commands: dict[str, str] = {}
    if arguments.one_slow:
        title = "One slow request"
        data = {kind.name: guarded(one_slow.measure_kind, kind, arguments, commands) for kind in kinds}
        body = one_slow.render(data, arguments)
    else:
        title = f"One queue: {arguments.seconds:g} s for each load"
        data = loads(kinds, arguments, commands)
        body = pages.render(data, arguments)
    arguments.name = arguments.name or ("one-slow" if arguments.one_slow else "one-queue")
    folder = report.conclude(arguments, title, commands, body, data)
    if folder is not None and not arguments.one_slow:
        plot(folder)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.one_queue", description=__doc__)
    parser.add_argument("--servers", help=f"beginnings of names, comma separated: {', '.join(k.name for k in KINDS)}")
    parser.add_argument("--loads", default="30,50,70,85", help="percents of the capacity, comma separated")
    parser.add_argument("--seconds", type=float, default=60, help="of arrivals for each load")
    parser.add_argument("--service", type=float, default=0.020, help="mean service time in seconds")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument(
        "--one-slow", action="store_true", help="a request of 5 s on one of the workers, at --slow-load"
    )
    parser.add_argument("--slow-load", type=float, default=12, help="percent of the capacity beside the slow request")
    parser.add_argument("--theory", action="store_true", help="only compare the simulation with Erlang's formula")
    parser.add_argument("--plot", metavar="FOLDER", help="only draw docs/one-queue.svg again from the raw data there")
    parser.add_argument("--name", help="of the folder under benches/runs")
    parser.add_argument("--realtime", action="store_true", help="before all other work of a machine that is not quiet")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    return parser.parse_args()


def loads(kinds: list[Kind], arguments: argparse.Namespace, commands: dict[str, str]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for percent in arguments.loads.split(","):
        load = float(percent) / 100
        trace = theory.poisson(load, SERVERS_OF_A_GROUP, arguments.service, arguments.seconds, arguments.seed)
        point: dict[str, Any] = {
            "formula_mean_ms": theory.mean_wait(SERVERS_OF_A_GROUP, load, arguments.service) * 1e3,
            "offered": statistics.fmean(trace.services) * len(trace.services) / arguments.seconds / SERVERS_OF_A_GROUP,
            "M/M/4": measure.summary(theory.one_queue(trace, SERVERS_OF_A_GROUP)),
            "4 x M/M/1": measure.summary(theory.queue_each(trace, SERVERS_OF_A_GROUP, arguments.seed)),
            "servers": {},
        }
        for kind in kinds:
            result = guarded(one_load, kind, arguments, commands, trace)
            point["servers"][kind.name] = result
            print(f"  {percent} %: {kind.name}: {pages.short(result, point['M/M/4'])}", flush=True)
        data[percent] = point
    return data


def guarded(measured: Any, kind: Kind, *details: Any) -> dict[str, Any]:
    try:
        if reason := kind.why_not():
            raise DidNotServe(reason)
        result: dict[str, Any] = measured(kind, *details)
    except DidNotServe as reason:
        result = {"absent": str(reason)}
    return result


def one_load(
    kind: Kind, arguments: argparse.Namespace, commands: dict[str, str], trace: theory.Trace
) -> dict[str, Any]:
    port = free_port()
    command = kind.command(port)
    commands[kind.name] = report.shown(command, port)
    opening = measure.opening(arguments.connections, arguments.service, SERVERS_OF_A_GROUP, arguments.seed)
    with Server(command, port) as server, Clients(port, arguments.connections) as clients:
        waits, _ = measure.run(server, trace, clients, opening)
    return waits.summary()


def check_theory(arguments: argparse.Namespace) -> int:
    worst = 0.0
    for percent in arguments.loads.split(","):
        load = float(percent) / 100
        seconds = WHERE_THEORY_IS_LONG * arguments.service / SERVERS_OF_A_GROUP / load
        trace = theory.poisson(load, SERVERS_OF_A_GROUP, arguments.service, seconds, arguments.seed)
        simulated = statistics.fmean(theory.one_queue(trace, SERVERS_OF_A_GROUP)) * 1e3
        formula = theory.mean_wait(SERVERS_OF_A_GROUP, load, arguments.service) * 1e3
        worst = max(worst, abs(simulated / formula - 1))
        print(f"  {percent} %: mean wait {simulated:.3f} ms simulated, {formula:.3f} ms by Erlang's formula")
    print(f"  farthest apart: {worst:.1%}")
    return 0 if worst < 0.03 else 1


def plot(folder: Path) -> int:
    PLOT.write_text(pages.draw(json.loads((folder / "raw.json").read_text())["data"]))
    print(f"drawn: {PLOT.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
