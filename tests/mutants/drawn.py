"""Draws a sample of faults by cosmic-ray, and says which of them the tests notice.

    python -m tests.mutants.drawn [--each 30] [--seed N]

The hand-written table of this folder has the faults that its authors thought of; a machine thinks of others. Faults are
put into this checkout, one at a time, and taken out again: commit first. Survivors go to dist/mutants/python.diff. They
are to be read, and are no failure: some of them change nothing.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
OUTPUT = ROOT / "dist/mutants"
PARTS = {
    "python/tricorn/arbiter/policy": "tests/unit/arbiter",
    "python/tricorn/config": "tests/unit/config",
    "python/tricorn/control": "tests/unit/control tests/integration/test_control.py",
}
"""The folders that faults are put into, and the tests that are to notice them."""
ANNOTATIONS = "core/ReplaceBinaryOperator_BitOr%"
"""Faults of `|`, which mostly stands in annotations."""
CONFIGURATION = """\
[cosmic-ray]
module-path = "{module}"
timeout = 300.0
excluded-modules = []
test-command = "{python} -m pytest -x -q -p no:cacheprovider {tests}"

[cosmic-ray.distributor]
name = "local"
"""


class Result(NamedTuple):
    drawn: int
    survivors: list[str]
    """The diff of each."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=30, help="faults in each part")
    parser.add_argument("--seed", type=int, default=date.today().toordinal(), help="the default is the day's")
    parser.add_argument("--cosmic-ray", default="cosmic-ray", help="its program")
    arguments = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    diffs = []
    print(f"seed {arguments.seed}")
    for module, tests in PARTS.items():
        session = OUTPUT / f"{Path(module).name}.sqlite"
        result = try_part(arguments.cosmic_ray, module, tests, session, arguments.each, arguments.seed)
        print(f"{module}: {result.drawn - len(result.survivors)} of {result.drawn} noticed by {tests}", flush=True)
        diffs += result.survivors
    (OUTPUT / "python.diff").write_text("\n".join(diffs))
    return 0


def try_part(program: str, module: str, tests: str, session: Path, each: int, seed: int) -> Result:
    session.unlink(missing_ok=True)
    file = session.with_suffix(".toml")
    file.write_text(CONFIGURATION.format(module=module, python=sys.executable, tests=tests))
    subprocess.run([program, "init", str(file), str(session)], cwd=ROOT, check=True)
    with sqlite3.connect(session) as database:
        drop_all_but(database, each, seed)
    subprocess.run([program, "exec", str(file), str(session)], cwd=ROOT, check=True)
    with sqlite3.connect(session) as database:
        drawn = database.execute("SELECT count(*) FROM work_items").fetchone()[0]
        survived = database.execute("SELECT diff FROM work_results WHERE test_outcome = 'SURVIVED'").fetchall()
    return Result(drawn, [diff for (diff,) in survived])


def drop_all_but(database: sqlite3.Connection, each: int, seed: int) -> None:
    """Leaves a sample of the faults in cosmic-ray's session."""
    found = database.execute(
        "SELECT job_id FROM mutation_specs WHERE operator_name NOT LIKE ? "
        "ORDER BY module_path, operator_name, occurrence",
        (ANNOTATIONS,),
    ).fetchall()
    kept = random.Random(seed).sample(found, min(each, len(found)))
    marks = ", ".join("?" * len(kept))
    for table in ("mutation_specs", "work_items"):
        database.execute(f"DELETE FROM {table} WHERE job_id NOT IN ({marks})", [job for (job,) in kept])


if __name__ == "__main__":
    sys.exit(main())
