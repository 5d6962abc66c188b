"""What does a healthy client notice of a thousand slow ones?  python -m benches.slow_clients --help

One worker. A healthy client asks 100 times a second, each time over a new connection: first alone, then beside slow
clients that send heads and bodies at one byte a second.
"""

from __future__ import annotations

import argparse
import signal
import sys
from typing import Any

from benches.harness import report
from benches.harness.process import DidNotServe, become_generator
from benches.slow_clients.measure import KINDS, measure, render


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benches.slow_clients", description=__doc__)
    parser.add_argument("--heads", type=int, default=500)
    parser.add_argument("--bodies", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--servers", help="beginnings of names, comma separated")
    parser.add_argument("--name", default="slow-clients", help="of the folder under benches/runs")
    parser.add_argument("--dry", action="store_true", help="write nothing to benches/runs")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    become_generator(realtime=False)
    commands: dict[str, str] = {}
    results: dict[str, Any] = {}
    for kind in KINDS:
        if arguments.servers and not kind.name.startswith(tuple(arguments.servers.split(","))):
            continue
        try:
            results[kind.name] = measure(kind, arguments, commands)
        except DidNotServe as reason:
            results[kind.name] = {"absent": str(reason)}
        print(f"  {kind.name}: {results[kind.name]}", flush=True)
    report.conclude(arguments, "Slow clients", commands, render(results, arguments), results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
