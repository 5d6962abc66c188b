"""What does a change cost?  python -m benches.versions --base REVISION

A server of this checkout and one of another revision run on the same interpreter. They take turns of a second under the
same load, so that other work of the machine disturbs both. The figure is the ratio of CPU per request, pair by pair.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
from collections.abc import Callable
from typing import Any

from benches.end_to_end.cases import DOCUMENT
from benches.harness import report
from benches.harness.load import Load
from benches.harness.process import ROOT, DidNotServe, before_other_work
from benches.versions import checkout, pairs
from benches.versions.pairs import Case, Pairs

CASES = [
    pairs.under_load("hello", Load()),
    pairs.under_load("close", Load(headers=(("Connection", "close"),))),
    pairs.under_load("body", Load("POST", "/echo", headers=(("Content-Type", "application/json"),), body=DOCUMENT)),
    pairs.under_load("stream", Load(path="/stream")),
    pairs.websocket("echo"),
]
APPLICATIONS = {"asgi": "asgi_app", "tornado": "tornado_app", "aiohttp": "aiohttp_app"}
CLASSES = ("sync", "gthread", "gevent", "eventlet", *APPLICATIONS)
WEBSOCKETS = {"asgi"}
"""Classes whose application here echoes messages."""
HEADER = ["class", "case", "base µs", "this µs", "ratio", "95 %", "base PSS MiB", "this PSS MiB"]


def main() -> int:
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    trees = [checkout.packages(arguments.base), ROOT / "python"]
    if arguments.realtime:
        before_other_work()
    rows, data = [], {}
    slower = []
    for worker_class in arguments.classes.split(","):
        for case in CASES:
            if case.name not in arguments.cases.split(",") or not has(worker_class, case):
                continue
            found = retried(worker_class, case, trees, arguments)
            rows.append(row(worker_class, case, found))
            data[f"{worker_class}, {case.name}"] = found._asdict()
            print("  " + "  ".join(f"{cell:>9}" for cell in rows[-1]), flush=True)
            if found.interval()[0] > arguments.most:
                slower.append(f"{worker_class} {case.name} {found.ratio():.3f}")
    title = f"This version beside {arguments.base}: {arguments.pairs} pairs of a second, {arguments.starts} starts"
    commands = {worker_class: " ".join(command(worker_class)(0)[1:]) for worker_class in CLASSES}
    report.conclude(arguments, title, commands, report.table(HEADER, rows), data)
    if slower:
        print(f"certainly above {arguments.most:g} times the CPU of {arguments.base}: {', '.join(slower)}")
    return 1 if slower else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.versions", description=__doc__)
    parser.add_argument("--base", default="HEAD", help="a revision of this repository (default: the last commit)")
    parser.add_argument("--classes", default=",".join(CLASSES), help="comma separated; all if not given")
    parser.add_argument("--cases", default=",".join(case.name for case in CASES), help="comma separated")
    parser.add_argument("--pairs", type=int, default=12, help="of turns, a second each")
    parser.add_argument("--starts", type=int, default=4, help="of the two servers, the pairs spread over them")
    parser.add_argument("--most", type=float, default=1.01, help="ratio that is reported when certainly exceeded")
    parser.add_argument("--realtime", action="store_true", help="before all other work of a machine that is not quiet")
    parser.add_argument("--name", default="versions", help="of the folder under benches/runs")
    parser.add_argument("--dry", action="store_true", help="write nothing to benches/runs")
    return parser.parse_args()


def has(worker_class: str, case: Case) -> bool:
    return case.name != "echo" or worker_class in WEBSOCKETS


def command(worker_class: str) -> Callable[[int], list[str]]:
    threads = ["--threads", "4"] if worker_class == "gthread" else []
    application = f"benches.versions.{APPLICATIONS.get(worker_class, 'wsgi_app')}:app"
    return lambda port: [
        *(sys.executable, "-m", "tricorn", "-b", f"127.0.0.1:{port}", "-w", "1", "-k", worker_class),
        *(*threads, application),
    ]


def retried(worker_class: str, case: Case, trees: list[Any], arguments: argparse.Namespace) -> Pairs:
    """A second try for a server that did not come up in time; a wrong answer twice ends the program."""
    asked = (command(worker_class), trees, case, arguments.pairs, arguments.starts)
    try:
        return pairs.measure(*asked)
    except DidNotServe as reason:
        print(f"  {worker_class} {case.name}: {reason}; once more", flush=True)
        return pairs.measure(*asked)


def row(worker_class: str, case: Case, found: Pairs) -> list[str]:
    low, high = found.interval()
    costs = [statistics.median(turn.cpu_us for turn in turns) for turns in (found.base, found.this)]
    return [
        *(worker_class, case.name, *(f"{cost:.2f}" for cost in costs)),
        *(f"{found.ratio():.3f}", f"{low:.3f}-{high:.3f}"),
        *(f"{pss / 2**20:.1f}" for pss in (found.base_pss, found.this_pss)),
    ]


if __name__ == "__main__":
    sys.exit(main())
