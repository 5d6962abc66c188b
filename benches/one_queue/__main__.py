"""Is it one queue? Measured waits beside those that theory gives.  python -m benches.one_queue --help

Four requests can be served at once; each takes as long as its client says, exponential with a mean of 20 ms (it sleeps,
so that one core suffices). Arrivals are a Poisson stream over persistent connections, each taking a free one at random.
The same trace goes to every server and to two simulations, M/M/4 and 4 x M/M/1, so that what chance does to a tail it
does to all of them. Wait: from when the request was due to its answer, less the service time asked for.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benches.harness import report, svg
from benches.harness.process import ROOT, become_generator
from benches.harness.servers import PATIENT, Figures, Found, in_turns, table
from benches.one_queue import measure, one_slow, theory
from benches.one_queue.measure import GROUP

PLOT = ROOT / "docs/images/one-queue.svg"

GRANIAN = "granian --workers 4 --blocking-threads 1 --http 1 --no-ws"
LINES = {
    "tricorn-sync": f"tricorn sync -w 4 {PATIENT}",
    "tricorn-gthread": f"tricorn gthread -w 2 --threads 2 {PATIENT}",
    "tricorn-no-handover": f"tricorn sync -w 4 {PATIENT} --no-handover",
    "gunicorn-gthread": f"gunicorn gthread -w 4 --threads 1 {PATIENT}",
    "granian": GRANIAN,
    "uvicorn": "uvicorn --workers 4 --timeout-keep-alive 600",
}
LENDING = {
    "tricorn-sync": LINES["tricorn-sync"],
    "tricorn-gthread": LINES["tricorn-gthread"],
    "tricorn-asgi": f"tricorn asgi -w 4 {PATIENT}",
    "tricorn-no-handover": LINES["tricorn-no-handover"],
    "granian": "granian --workers 4 --blocking-threads 1 --http auto --no-ws",
    "hypercorn": "hypercorn -w 4 --keep-alive 600",
}
"""Over TLS and HTTP/2; over TLS `uvicorn` too, which has no HTTP/2."""
COLOURS = {"M/M/4 (simulated)": 0, **dict(zip(LINES, (1, 6, 3, 4, 5, 2), strict=True))}

CRITERIA = ("mean ms", "p99", "p99.9")
SHARE, MILLISECONDS = 0.10, 1.0
"""How far a measured figure may lie from the simulated one: a share of it, and milliseconds."""
LATE = 1.0
"""Milliseconds (p99) that requests may go out late; beyond, another program was using the load generator's core."""


def main() -> int:
    arguments = parse()
    if arguments.plot:
        return plot(Path(arguments.plot))
    become_generator()
    lines = lines_over(arguments.over)
    if arguments.one_slow:
        arguments.name = "one-slow"
        found = in_turns(lines, arguments, lambda line, found: one_slow.one_round(line, found, arguments))
        body = table(one_slow.TITLE.format(arguments), found)
        report.conclude(arguments, "One slow request", found.commands, body, found.rounds)
        return 0
    pages: list[str] = []
    data: dict[str, Any] = {}
    commands: dict[str, str] = {}
    for percent in arguments.loads.split(","):
        found, data[percent] = one_load(percent, lines, arguments)
        pages.append(table(f"{percent} % load, {clients(arguments)}, waits in ms", found))
        commands.update(found.commands)
    title = f"One queue: {arguments.seconds:g} s for each load"
    if arguments.over != "clear":
        arguments.name = f"one-queue-{arguments.over}"
    folder = report.conclude(arguments, title, commands, "\n\n".join(pages), data)
    return 0 if folder is None or arguments.over != "clear" else plot(folder)


def lines_over(protocol: str) -> Mapping[str, str]:
    match protocol:
        case "clear":
            return LINES
        case "tls":
            return LENDING | {"uvicorn": LINES["uvicorn"]}
        case _:
            return LENDING


def clients(arguments: argparse.Namespace) -> str:
    match arguments.over:
        case "http2":
            return f"{arguments.connections} connections of HTTP/2 with up to {arguments.streams} streams each"
        case "tls":
            return f"{arguments.connections} connections over TLS"
        case _:
            return f"{arguments.connections} connections"


def parse() -> argparse.Namespace:
    parser = report.options("one_queue", __doc__)
    parser.add_argument("--loads", default="30,50,70,85", help="percents of the capacity, comma separated")
    parser.add_argument("--seconds", type=float, default=60, help="of arrivals for each load")
    parser.add_argument("--service", type=float, default=0.020, help="mean service time in seconds")
    parser.add_argument("--over", choices=("clear", "tls", "http2"), default="clear", help="how requests come (clear)")
    parser.add_argument("--connections", type=int, help="64; over HTTP/2 2")
    parser.add_argument("--streams", type=int, default=32, help="most requests at a time on a connection of HTTP/2")
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--one-slow", action="store_true", help="a request of 5 s on one of the workers")
    parser.add_argument("--slow-load", type=float, default=12, help="percent of the capacity beside the slow request")
    parser.add_argument("--plot", metavar="FOLDER", help="only draw docs/images/one-queue.svg again from its raw data")
    arguments = report.begin(parser)
    arguments.connections = arguments.connections or (2 if arguments.over == "http2" else 64)
    return arguments


def one_load(percent: str, lines: Mapping[str, str], arguments: argparse.Namespace) -> tuple[Found, dict[str, Any]]:
    """The rows of the table, and what is kept and drawn."""
    trace = theory.poisson(float(percent) / 100, GROUP, arguments.service, arguments.seconds, arguments.seed)
    simulated = {
        "M/M/4": measure.summary(theory.one_queue(trace, GROUP)),
        "4 x M/M/1": measure.summary(theory.queue_each(trace, GROUP, arguments.seed)),
    }

    def one_round(line: str, found: Found) -> Figures:
        waits, _ = measure.run(line, found, trace, arguments)
        return {**waits, "one queue?": verdict(waits, simulated["M/M/4"])}

    found = in_turns(lines, arguments, one_round)
    servers = {name: rounds[0] for name, rounds in found.rounds.items()}
    rows = {f"{name}, simulated": [figures] for name, figures in simulated.items()}
    return Found({**found.rounds, **rows}, found.absent, found.commands), {**simulated, "servers": servers}


def verdict(waits: Figures, simulated: Figures) -> str:
    """yes, or which figures are too far off, or that the machine was not quiet enough to tell."""
    if waits["late p99"] > LATE:
        return "disturbed: measure again"
    far = [
        f"{name.removesuffix(' ms')} {waits[name] - simulated[name]:+.1f} ms"
        for name in CRITERIA
        if abs(waits[name] - simulated[name]) > SHARE * simulated[name] + MILLISECONDS
    ]
    if waits["failed"]:
        far.append(f"{waits['failed']} failed")
    return "no: " + ", ".join(far) if far else "yes"


def plot(folder: Path) -> int:
    data = json.loads((folder / "raw.json").read_text())["data"]
    panels = []
    for percent, point in data.items():
        lines = [curve(name, result) for name, result in point["servers"].items() if "tail" in result]
        # The theory lies on top, so that it stays visible where it is met.
        lines.append(curve("M/M/4 (simulated)", point["M/M/4"], dashed=True))
        panels.append(svg.Panel(f"{percent} % load", WAIT, SHARE_BEYOND, lines))
    PLOT.write_text(svg.page("How long requests wait: the share that waits longer than …", panels))
    print(f"drawn: {PLOT.relative_to(ROOT)}")
    return 0


WAIT = svg.Axis("wait", svg.MILLISECONDS, logarithmic=True)
SHARE_BEYOND = svg.Axis(
    "share of the requests",
    [(0.0001, "0.01 %"), (0.001, "0.1 %"), (0.01, "1 %"), (0.1, "10 %"), (1, "100 %")],
    logarithmic=True,
)


def curve(name: str, result: dict[str, Any], *, dashed: bool = False) -> svg.Line:
    return svg.Line(name, COLOURS.get(name, 0), [(wait, share) for wait, share in result["tail"]], dashed)


if __name__ == "__main__":
    sys.exit(main())
