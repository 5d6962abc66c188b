"""How fast is a request, and what does it cost?  python -m benches.end_to_end --help

One worker on one core, the load generator on another. The servers take turns, round after round, so that a disturbance
of the machine hits all of them; a figure is the median of its rounds. Every server is started anew for every round.
"""

from __future__ import annotations

import argparse
import signal
import sys

from benches.end_to_end import servers
from benches.end_to_end.cases import CASES
from benches.end_to_end.rounds import measure, raw, render
from benches.end_to_end.servers import SERVERS
from benches.harness import environment, load, report
from benches.harness.process import ROOT


def main() -> int:
    arguments = parse()
    servers.compile_floor()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chosen = [kind for kind in SERVERS if matches(kind.name, arguments.servers)]
    cases = [case for case in CASES if arguments.cases is None or case.name in arguments.cases.split(",")]
    described = environment.describe()
    for key, value in described.items():
        print(f"  {key}: {value}")
    commands = {"load": load.command(arguments.connections, arguments.seconds, "/", "PORT")}
    pages, data = [], {}
    for case in cases:
        rounds, absent = measure(case, chosen, arguments, commands)
        page = render(case, rounds, absent)
        print(f"\n{page}\n", flush=True)
        pages.append(page)
        data[case.name] = raw(rounds, absent)
        if not arguments.dry:
            title = f"End to end: {arguments.rounds} rounds of {arguments.seconds:g} s, medians"
            folder = report.write(arguments.name, title, described, commands, "\n\n".join(pages), data)
    if not arguments.dry:
        print(f"written to {folder.relative_to(ROOT)}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.end_to_end", description=__doc__)
    parser.add_argument("--servers", help=f"names or beginnings, comma separated: {', '.join(k.name for k in SERVERS)}")
    parser.add_argument("--cases", help=f"names, comma separated: {', '.join(case.name for case in CASES)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of measured load in a round")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--name", default="end-to-end", help="of the folder under benches/runs")
    parser.add_argument("--dry", action="store_true", help="write nothing to benches/runs")
    return parser.parse_args()


def matches(name: str, wanted: str | None) -> bool:
    return wanted is None or any(name == word or name.startswith(f"{word}-") for word in wanted.split(","))


if __name__ == "__main__":
    sys.exit(main())
