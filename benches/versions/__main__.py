"""What does a change cost?  python -m benches.versions --base REVISION

A server of this checkout and one of another revision run on the same interpreter. They take turns of a second under the
same load, so that other work of the machine disturbs both. The figure is the ratio of CPU per request, pair by pair.
With `--beside TRICORN_DOCTOR=off` the base is this checkout, too, with that setting.
"""

from __future__ import annotations

import argparse
import statistics
import sys

from tricorn_bench.load import WebSocket

from benches.cases.table import DOCUMENT
from benches.harness import report
from benches.harness.process import ROOT, DidNotServe
from benches.versions import checkout, pairs
from benches.versions.pairs import Case, Pairs, Side

JSON = (("Content-Type", "application/json"),)
CASES = [
    Case("hello"),
    Case("close", more={"keep_alive": False}),
    Case("body", "/echo", {"method": "POST", "headers": JSON, "body": DOCUMENT.encode()}),
    Case("stream", "/stream"),
    Case("file", "/file"),
    Case("echo", "/echo", {"websocket": WebSocket(size=125)}),
    Case("flask", "/constant", app="benches.apps.flask:app"),
]
WSGI = {"sync", "gthread", "gevent", "eventlet"}
"""Classes that Flask runs under."""
USUAL = "hello,close,body,stream,echo"
APPLICATIONS = {"asgi": "asgi", "tornado": "tornado", "aiohttp": "aiohttp"}
CLASSES = ("sync", "gthread", "gevent", "eventlet", *APPLICATIONS)
WEBSOCKETS = {"asgi"}
"""Classes whose application here echoes messages."""
HEADER = ["class", "case", "base µs", "this µs", "ratio", "95 %", "base PSS MiB", "this PSS MiB"]


def main() -> int:
    arguments = parse()
    compared = sides(arguments)
    rows, data, slower = [], {}, []
    for worker_class in arguments.classes.split(","):
        for case in CASES:
            if not is_wanted(case, worker_class, arguments):
                continue
            found = retried(worker_class, case, compared, arguments)
            rows.append(row(worker_class, case, found))
            data[f"{worker_class}, {case.name}"] = found._asdict()
            print("  " + "  ".join(f"{cell:>9}" for cell in rows[-1]), flush=True)
            if found.interval()[0] > arguments.most:
                slower.append(f"{worker_class} {case.name} {found.ratio():.3f}")
    title = (
        f"This version beside {name_of_base(arguments)}: {arguments.pairs} pairs of a second, {arguments.starts} starts"
    )
    commands = {worker_class: line(worker_class) for worker_class in arguments.classes.split(",")}
    report.conclude(arguments, title, commands, report.table(HEADER, rows), data)
    if slower:
        print(f"certainly above {arguments.most:g} times the CPU of {name_of_base(arguments)}: {', '.join(slower)}")
    return 1 if slower else 0


def parse() -> argparse.Namespace:
    parser = report.options("versions", __doc__)
    add_base(parser)
    parser.add_argument("--classes", default=",".join(CLASSES), help="comma separated; all if not given")
    parser.add_argument("--cases", default=USUAL, help="comma separated, also: file, flask")
    parser.add_argument("--pairs", type=int, default=12, help="of turns, a second each")
    parser.add_argument("--starts", type=int, default=4, help="of the two servers, the pairs spread over them")
    parser.add_argument("--most", type=float, default=1.01, help="ratio that is reported when certainly exceeded")
    return report.begin(parser)


def add_base(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", default="HEAD", help="a revision of this repository (default: the last commit)")
    parser.add_argument("--beside", metavar="NAME=VALUE", help="in place of a revision: this one, with that variable")


def sides(arguments: argparse.Namespace) -> list[Side]:
    """The base, and this version."""
    this = Side(ROOT / "python")
    if arguments.beside is None:
        return [Side(checkout.packages(arguments.base)), this]
    name, _, value = arguments.beside.partition("=")
    return [Side(this.tree, {name: value}), this]


def name_of_base(arguments: argparse.Namespace) -> str:
    return str(arguments.beside or arguments.base)


def is_wanted(case: Case, worker_class: str, arguments: argparse.Namespace) -> bool:
    can = {"echo": WEBSOCKETS, "flask": WSGI, "file": WSGI | {"asgi"}}.get(case.name, CLASSES)
    return case.name in arguments.cases.split(",") and worker_class in can


def line(worker_class: str) -> str:
    return f"{worker_class} -w 1{' --threads 4' * (worker_class == 'gthread')}"


def application(worker_class: str) -> str:
    return f"benches.apps.{APPLICATIONS.get(worker_class, 'wsgi')}:app"


def retried(worker_class: str, case: Case, compared: list[Side], arguments: argparse.Namespace) -> Pairs:
    """A second try for a server that did not come up in time; a wrong answer twice ends the program."""
    asked = (line(worker_class), application(worker_class), compared, case)
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
