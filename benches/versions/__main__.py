"""What does a change cost?  python -m benches.versions --base REVISION

A server of this checkout and one of another revision run on the same interpreter. They take turns of a second under the
same load, so that other work of the machine disturbs both. The figure is the ratio of CPU per request, pair by pair.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

from tricorn.load import WebSocket

from benches.cases.table import DOCUMENT
from benches.harness import report
from benches.harness.process import ROOT, DidNotServe
from benches.versions import checkout, pairs
from benches.versions.pairs import Case, Pairs

JSON = (("Content-Type", "application/json"),)
CASES = [
    Case("hello"),
    Case("close", more={"keep_alive": False}),
    Case("body", "/echo", {"method": "POST", "headers": JSON, "body": DOCUMENT.encode()}),
    Case("stream", "/stream"),
    Case("echo", "/echo", {"websocket": WebSocket(size=125)}),
]
APPLICATIONS = {"asgi": "asgi", "tornado": "tornado", "aiohttp": "aiohttp"}
CLASSES = ("sync", "gthread", "gevent", "eventlet", *APPLICATIONS)
WEBSOCKETS = {"asgi"}
"""Classes whose application here echoes messages."""
HEADER = ["class", "case", "base µs", "this µs", "ratio", "95 %", "base PSS MiB", "this PSS MiB"]


def main() -> int:
    arguments = parse()
    trees = [checkout.packages(arguments.base), ROOT / "python"]
    rows, data, slower = [], {}, []
    for worker_class in arguments.classes.split(","):
        for case in CASES:
            if case.name not in arguments.cases.split(",") or (case.name == "echo" and worker_class not in WEBSOCKETS):
                continue
            found = retried(worker_class, case, trees, arguments)
            rows.append(row(worker_class, case, found))
            data[f"{worker_class}, {case.name}"] = found._asdict()
            print("  " + "  ".join(f"{cell:>9}" for cell in rows[-1]), flush=True)
            if found.interval()[0] > arguments.most:
                slower.append(f"{worker_class} {case.name} {found.ratio():.3f}")
    title = f"This version beside {arguments.base}: {arguments.pairs} pairs of a second, {arguments.starts} starts"
    commands = {worker_class: line(worker_class) for worker_class in arguments.classes.split(",")}
    report.conclude(arguments, title, commands, report.table(HEADER, rows), data)
    if slower:
        print(f"certainly above {arguments.most:g} times the CPU of {arguments.base}: {', '.join(slower)}")
    return 1 if slower else 0


def parse() -> argparse.Namespace:
    parser = report.options("versions", __doc__)
    parser.add_argument("--base", default="HEAD", help="a revision of this repository (default: the last commit)")
    parser.add_argument("--classes", default=",".join(CLASSES), help="comma separated; all if not given")
    parser.add_argument("--cases", default=",".join(case.name for case in CASES), help="comma separated")
    parser.add_argument("--pairs", type=int, default=12, help="of turns, a second each")
    parser.add_argument("--starts", type=int, default=4, help="of the two servers, the pairs spread over them")
    parser.add_argument("--most", type=float, default=1.01, help="ratio that is reported when certainly exceeded")
    return report.begin(parser)


def line(worker_class: str) -> str:
    return f"{worker_class} -w 1{' --threads 4' * (worker_class == 'gthread')}"


def application(worker_class: str) -> str:
    return f"benches.apps.{APPLICATIONS.get(worker_class, 'wsgi')}:app"


def retried(worker_class: str, case: Case, trees: list[Any], arguments: argparse.Namespace) -> Pairs:
    """A second try for a server that did not come up in time; a wrong answer twice ends the program."""
    asked = (line(worker_class), application(worker_class), trees, case)
    try:
        return pairs.measure(pairs.Pairing(*asked), arguments.pairs, arguments.starts)
    except DidNotServe as reason:
        print(f"  {worker_class} {case.name}: {reason}; once more", flush=True)
        return pairs.measure(pairs.Pairing(*asked), arguments.pairs, arguments.starts)


def row(worker_class: str, case: Case, found: Pairs) -> list[str]:
    low, high = found.interval()
    costs = [statistics.median(turn.cpu_us for turn in turns) for turns in (found.base, found.this)]
    return [
        *(worker_class, case.name, *(f"{cost:.2f}" for cost in costs)),
        *(f"{found.ratio():.3f}", f"{low:.3f}-{high:.3f}"),
        *(f"{pss:.1f}" for pss in (found.base_pss, found.this_pss)),
    ]


if __name__ == "__main__":
    sys.exit(main())
