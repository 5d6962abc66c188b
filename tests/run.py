"""Runs the Python tests in two lanes, and records every test that failed once.

    python -m tests.run [--all] [arguments of pytest]

The parallel lane has three processes for each processor, since most of a test's time is waiting: for deadlines, and for
its servers. The serial lane (`needs_cpu`) follows in two processes. Without `--all` the marked `nightly` are left out,
and what failed runs once more, alone: a test that passes then is noted in dist/tests/flaky.json and told at the end.
With `--all` nothing runs again. JUnit's XML of each run is in dist/tests, too. Each run tells its processor time with
that of its servers, which can be compared where the machine was busy and the duration cannot.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.lanes import NEEDS_CPU

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "dist/tests"
FLAKY = RESULTS / "flaky.json"
PROCESSES_PER_PROCESSOR = 3
SERIAL_PROCESSES = 2
RUN_AGAIN = 20
"""More failures than that are no matter of luck, and do not run again."""
OK, FAILED, NOTHING_COLLECTED = 0, 1, 5
"""Exit statuses of pytest. Others tell of a run that did not come to its end."""


class Run(NamedTuple):
    """The result of one call of pytest."""

    lane: str
    status: int
    counts: Counter[str]
    failures: dict[str, str]
    """Why each failed, by node id."""


def main(arguments: Sequence[str]) -> int:
    began = time.monotonic()
    is_everything = "--all" in arguments
    given = [argument for argument in arguments if argument != "--all"]
    runs = [
        pytest("parallel", [*_marks("not needs_cpu", is_everything), *_processes(_width()), *given]),
        pytest("serial", [*_marks("needs_cpu", is_everything), *_processes(SERIAL_PROCESSES), *given, *_serial(given)]),
    ]
    flaky: list[str] = []
    status = worst(run.status for run in runs)
    failures = {name: (run.lane, reason) for run in runs for name, reason in run.failures.items()}
    if status == FAILED and not is_everything and 0 < len(failures) <= RUN_AGAIN:
        print("\033[1m== Once more and alone: what failed\033[0m", flush=True)
        again = pytest("again", ["-v", *failures])
        status = again.status
        flaky = [name for name in failures if name not in again.failures] if status in (OK, FAILED) else []
    note({name: failures[name] for name in flaky})
    print(closing_line(runs, flaky, time.monotonic() - began), flush=True)
    return status


def pytest(lane: str, arguments: Sequence[str]) -> Run:
    """Runs pytest, whose output is ours, with its record and its JUnit file in dist/tests."""
    record = RESULTS / f"{lane}.json"
    record.unlink(missing_ok=True)
    print(f"\033[1m== Python tests: {lane}\033[0m", flush=True)
    files = ["-p", "tests.record", f"--record={record}", f"--junit-xml={RESULTS / lane}.xml"]
    # pytest may write bytecode: else each of its processes rewrites the assertions of all modules, every time.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began, before = time.monotonic(), _processor_time()
    done = subprocess.run([sys.executable, "-m", "pytest", *files, *arguments], cwd=ROOT, env=environ)
    used, lasted = _processor_time() - before, time.monotonic() - began
    print(f"   {lane}: {used:.0f} s of processor time in {lasted:.0f} s", flush=True)
    told: dict[str, Any] = json.loads(record.read_text()) if record.exists() else {"counts": {}, "failures": {}}
    return Run(lane, done.returncode, Counter(told["counts"]), told["failures"])


def _processor_time() -> float:
    """Seconds that child processes which have ended used, with their own children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def worst(statuses: Iterable[int]) -> int:
    """The status of the whole: a lane that has no test of those asked for does not count, unless both have none."""
    kinds = set(statuses)
    return max(kinds - {NOTHING_COLLECTED}, default=NOTHING_COLLECTED)


def note(flaky: dict[str, tuple[str, str]]) -> None:
    """Adds the tests that passed the second time only to those of earlier runs."""
    if not flaky:
        return
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    known = json.loads(FLAKY.read_text()) if FLAKY.exists() else []
    known += [
        {"name": name, "revision": revision, "reason": reason, "lane": lane, "when": when}
        for name, (lane, reason) in flaky.items()
    ]
    FLAKY.write_text(json.dumps(known, indent=1) + "\n")


def closing_line(runs: Sequence[Run], flaky: Sequence[str], seconds: float) -> str:
    """The sum of both lanes, as pytest writes its own. A test that passed the second time counts as passed."""
    total = sum((run.counts for run in runs), Counter())
    for name in flaky:
        print(f"FLAKY {name}")
    if flaky:
        print(f"{len(flaky)} failed at first and passed alone: see {FLAKY.relative_to(ROOT)}")
        lost = min(len(flaky), total["failed"])
        total["failed"] -= lost
        total["error"] -= min(len(flaky) - lost, total["error"])
        total["passed"] += lost
    words = [f"{total[kind]} {kind}" for kind in ("failed", "passed", "skipped", "error") if total[kind]]
    words += [f"{len(flaky)} flaky"] if flaky else []
    clock = f" ({int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02})" if seconds >= 60 else ""
    return f" {', '.join(words) or 'no tests ran'} in {seconds:.2f}s{clock} ".center(100, "=")


def _marks(lane: str, is_everything: bool) -> list[str]:
    return ["-m", lane if is_everything else f"{lane} and not nightly"]


def _processes(count: int) -> list[str]:
    return ["-n", str(count), "--dist", "loadfile", "--no-loadscope-reorder", "--durations=40"]


def _width() -> int:
    return PROCESSES_PER_PROCESSOR * len(os.sched_getaffinity(0))


def _serial(given: Sequence[str]) -> list[str]:
    """The rooms of the serial lane, which saves collecting all others, unless rooms are given."""
    if any((ROOT / argument.partition("::")[0]).exists() for argument in given if not argument.startswith("-")):
        return []
    return [f"tests/{room}" for room in NEEDS_CPU]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
