"""What does a change cost, in instructions?  python -m benches.instructions --base REVISION

callgrind counts what a worker executes in user space for a request, in this checkout and in another revision. Other
work of the machine hardly changes that: a difference of half a percent is one. What the kernel does, and what caches
and branches cost, is not counted; benches.versions has it. A case of which time decides (stream: how many pieces travel
together) says little here.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tricorn_bench.bench.configuration import Configuration

from benches.harness import report
from benches.harness.load import good, send
from benches.harness.process import ROOT, DidNotServe, Server, free_port, python_path
from benches.versions.__main__ import CASES, CLASSES, add_base, application, is_wanted, line, name_of_base, sides
from benches.versions.pairs import Case, Side

HEADER = ["class", "case", "base", "this", "ratio"]
WARM = 300
"""Requests before the counting: caches are filled by then, and CPython has specialised what it runs."""
SHIELD = str(ROOT / "benches" / "instructions" / "shield.py")


def main() -> int:
    arguments = parse()
    if missing := [tool for tool in ("valgrind", "vgdb") if not shutil.which(tool)]:
        sys.exit(f"{' and '.join(missing)} cannot be found: install valgrind (apt install valgrind).")
    compared = sides(arguments)
    rows, data, above = [], {}, []
    classes = arguments.classes.split(",")
    for worker_class in classes:
        for case in CASES:
            if not is_wanted(case, worker_class, arguments):
                continue
            base, this = (count(worker_class, case, side, arguments.requests) for side in compared)
            rows.append([worker_class, case.name, f"{base:,.0f}", f"{this:,.0f}", f"{this / base:.3f}"])
            data[f"{worker_class}, {case.name}"] = {"base": base, "this": this}
            print("  " + "  ".join(f"{cell:>9}" for cell in rows[-1]), flush=True)
            if this / base > arguments.most:
                above.append(f"{worker_class} {case.name}")
    title = (
        f"Instructions of a request beside {name_of_base(arguments)}: {arguments.requests} requests, one after another"
    )
    report.conclude(arguments, title, {name: line(name) for name in classes}, report.table(HEADER, rows), data)
    if above:
        print(f"above {arguments.most:g} times the instructions of {name_of_base(arguments)}: {', '.join(above)}")
    return 1 if above else 0


def parse() -> argparse.Namespace:
    parser = report.options("instructions", __doc__)
    add_base(parser)
    parser.add_argument("--classes", default=",".join(CLASSES), help="comma separated; all if not given")
    parser.add_argument("--cases", default="hello", help="of benches.versions, comma separated (default: hello)")
    parser.add_argument("--requests", type=int, default=600, help="that are counted")
    parser.add_argument("--most", type=float, default=1.01, help="ratio that is reported when exceeded")
    return report.begin(parser)


def count(worker_class: str, case: Case, side: Side, requests: int) -> float:
    """Instructions of the worker per request. Ends the program when a server does not come up twice."""
    for last in (False, True):
        try:
            return counted(worker_class, case, side, requests)
        except DidNotServe as reason:
            if last:
                sys.exit(f"{worker_class} {case.name}: {reason}")
            print(f"  {worker_class} {case.name}: {reason}; once more", flush=True)
    raise AssertionError("not reached")


def counted(worker_class: str, case: Case, side: Side, requests: int) -> float:
    port = free_port()
    command = Configuration.parse(line(worker_class)).command(
        sys.executable, case.app or application(worker_class), port, None
    )
    path = os.pathsep.join(python_path(side.tree))
    environment = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", **side.environment}
    with tempfile.TemporaryDirectory() as folder:
        callgrind = ["--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={folder}/%p"]
        with UnderValgrind([sys.executable, SHIELD, "valgrind", *callgrind, *command], port, environment) as server:
            worker = next(pid for pid in server.pids() if pid != server.process.pid)
            ask(port, case, WARM)
            control(worker, "zero")
            ask(port, case, requests)
            control(worker, "dump")
            text = Path(folder, f"{worker}.1").read_text()
    totals = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
    if not totals or totals[1] == "0":
        raise DidNotServe("callgrind counted nothing")
    return int(totals[1]) / requests


class UnderValgrind(Server):
    """Fifty times as slow as without."""

    boot_timeout = 300.0


def ask(port: int, case: Case, requests: int) -> None:
    """One after another: what several share, such as a look at the poller, is a matter of time."""
    good(send(port, case.path, **{**case.more, "connections": 1, "requests": requests, "seconds": None}))


def control(pid: int, word: str) -> None:
    done = subprocess.run(["vgdb", f"--pid={pid}", word], capture_output=True, text=True)
    if done.returncode:
        raise DidNotServe(f"vgdb {word}: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main())
