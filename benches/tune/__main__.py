"""Does `tricorn tune` recommend the best configuration?  python -m benches.tune --help

For each application of cases.py: `tricorn tune`, then an exhaustive comparison on the same cores. Every configuration
is measured once, the best ones and the recommended one in further rounds, in turns. Two minutes an application;
results are added to the run of today, so that `--only` measures a part at a time.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tricorn.record import replace
from tricorn_bench.bench import process, session
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.database import Watch
from tricorn_bench.bench.machine import Cores
from tricorn_bench.bench.measure import Bench, measure
from tricorn_bench.bench.servers import KINDS
from tricorn_bench.bench.trial import Request, Stage, Trial
from tricorn_bench.tune.calibrate import Calibration, memory_of, rate_of
from tricorn_bench.tune.model import Costs
from tricorn_bench.tune.trials import connections

from benches import archive
from benches.harness import report
from benches.harness.lines import postgres
from benches.harness.process import ROOT, ending_with_this, python_path
from benches.tune import table
from benches.tune.cases import ASGI, CASES, WITHOUT_COMPARISON, Case

AGAIN = 2
"""Configurations that get further rounds."""
ROUNDS = 1
"""Further rounds."""
LOAD = 1.0
"""Seconds of load."""


def main() -> int:
    parser = report.options("tune", __doc__)
    names = ", ".join(one.name for one in (*CASES, *WITHOUT_COMPARISON))
    parser.add_argument("--only", help=f"names, comma separated: {names}")
    arguments = report.begin(parser)
    wanted = arguments.only.split(",") if arguments.only else None
    folder = ROOT / "benches" / "runs" / f"{time.strftime('%Y-%m-%d')}-{arguments.name}"
    process.raise_descriptors()
    for case in (*CASES, *WITHOUT_COMPARISON):
        if wanted is None or case.name in wanted:
            row = _measured(case, anyway=arguments.realtime)
            print(row["text"], table.grid([row]), sep="\n\n", flush=True)
            if not arguments.dry:
                _keep(folder, row)
    return 0


def _measured(case: Case, *, anyway: bool) -> dict[str, Any]:
    with postgres() if case.database is not None else nullcontext() as address:
        environment = {"PYTHONPATH": os.pathsep.join(python_path()), **({"DATABASE_URL": address} if address else {})}
        os.environ.update(environment)
        text, answer = _tuned(case, ["--anyway"] if anyway else [], address)
        grid = _compared(case, answer, address) if case.grid else []
    words = shlex.join(case.words)
    return {"case": case.name, "command": f"tricorn tune {words}", "text": text, "answer": answer, "grid": grid}


def _tuned(case: Case, words: Sequence[str], address: str | None) -> tuple[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "answer.json"
        database = ["--db", address] if address else []
        command = [sys.executable, "-m", "tricorn", "tune", *case.words, *words, *database, "-o", str(path)]
        print(f"\n== {case.name}: {case.question}", flush=True)
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, preexec_fn=ending_with_this)
        if not path.exists():
            sys.exit(f"tricorn tune {shlex.join(case.words)} left with status {done.returncode}: no answer")
        return done.stdout, json.loads(path.read_text())


def _compared(case: Case, answer: Mapping[str, Any], address: str | None) -> list[dict[str, Any]]:
    cores = Cores.split(sorted(os.sched_getaffinity(0)))
    database = Watch(address) if address else None
    bench = Bench(
        application=case.application,
        interface="ASGI" if case.application == ASGI else "WSGI",
        python=sys.executable,
        request=Request(path=case.path),
        cores=cores,
        rounds=1,
        warmup=0.2,
        generate=session.generator(),
        say=session.say,
        database=database,
    )
    finalists = [one["configuration"].removeprefix("tricorn ") for one in answer["measured"]]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores.load)
    try:
        with session.leaving_no_process():
            costs = Calibration({name: Costs(**one) for name, one in answer["costs"].items()}, {})
            rows = _rounds(bench, costs, dict.fromkeys((*case.grid, *finalists)))
            allowed = sorted((one for one in rows.values() if table.allowed(one, case)), key=table.rate, reverse=True)
            best = [one["configuration"] for one in allowed[:AGAIN]]
            again = [*best, (answer["recommended"] or "").removeprefix("tricorn ")]
            for _ in range(ROUNDS):
                for name, row in _rounds(bench, costs, dict.fromkeys(name for name in again if name)).items():
                    rows[name]["rates"] += row["rates"]
    finally:
        os.sched_setaffinity(0, before)
        if database is not None:
            database.close()
    return list(rows.values())


def _rounds(bench: Bench, costs: Calibration, lines: Mapping[str, None]) -> dict[str, dict[str, Any]]:
    """Measures each configuration once, with as many requests at once as saturate it."""
    trials = []
    for line in lines:
        configuration = Configuration.parse(line)
        load = Stage(seconds=LOAD, connections=connections(costs, configuration), at=1.0)
        trials.append(Trial(configuration, (replace(load, seconds=LOAD / 2, kept=False), load), line))
    cells = {cell["configuration"]: cell["rounds"][0] for cell in measure(bench, trials).cells}
    found = {}
    for line in lines:
        one = cells.get(Configuration.parse(line).name)
        if one is not None:
            figures = {"rates": [rate_of(one)], "memory": memory_of(one), "database": one["database"]}
            found[line] = {"configuration": line, **figures}
    return found


def _keep(folder: Path, row: dict[str, Any]) -> None:
    """Adds a row to the run, in the order of the cases, and renders its page again."""
    path = folder / "raw.json"
    folder.mkdir(parents=True, exist_ok=True)
    with archive.unpacked(folder) as files:
        earlier = files / "raw.json"
        kept = {one["case"]: one for one in (json.loads(earlier.read_text())["data"] if earlier.exists() else ())}
    kept[row["case"]] = row
    rows = [kept[one.name] for one in (*CASES, *WITHOUT_COMPARISON) if one.name in kept]
    peers = {kind.name for kind in KINDS}
    environment = {name: text for name, text in report.environment().items() if name not in peers}
    raw = {"environment": environment, "commands": {one["case"]: one["command"] for one in rows}, "data": rows}
    path.write_text(json.dumps(raw, indent=1) + "\n")
    (folder / archive.DATA).unlink(missing_ok=True)
    (folder / "README.md").write_text(table.page(rows, environment))
    print(
        f"\nwritten to {folder.relative_to(ROOT)}; then: "
        "python -m benches.render.tune, python -m benches.archive, python -m benches.render.runs"
    )


if __name__ == "__main__":
    sys.exit(main())
