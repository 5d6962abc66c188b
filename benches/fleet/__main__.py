"""Where do requests of a fleet wait, and which metric makes it as large as it has to be?  python -m benches.fleet

Simulated, in virtual time: nothing is measured here but arithmetic, and the same seed gives the same figures. The
program is crates/tricorn-load/examples/fleet, whose tests compare it with queueing theory. About four minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benches.fleet import tables
from benches.harness import report
from benches.harness.process import ROOT

BUILD = ["cargo", "build", "--release", "--quiet", "-p", "tricorn-load", "--example", "fleet"]
PROGRAM = ROOT / "target/release/examples/fleet"


def main() -> int:
    parser = report.options("fleet", __doc__)
    parser.add_argument("--hosts", type=int, default=1000, help="of the table of waits, 16 slots each")
    arguments = report.begin(parser)
    subprocess.run(BUILD, cwd=ROOT, check=True)
    words = {"waits": ["waits", str(arguments.hosts)], "slow": ["slow"], "scale": ["scale"]}
    rows = {name: _rows(command) for name, command in words.items()}
    commands = {name: " ".join([str(PROGRAM.relative_to(ROOT)), *command]) for name, command in words.items()}
    title = f"A fleet of {arguments.hosts} hosts of 16 slots in virtual time"
    report.conclude(arguments, title, commands, tables.page(rows), rows)
    return 0


def _rows(words: list[str]) -> list[dict[str, Any]]:
    print(f"  {' '.join(words)} …", flush=True)
    done = subprocess.run([PROGRAM, *words], check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    sys.exit(main())
