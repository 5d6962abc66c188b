"""However a benchmark ends, its servers end with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tricorn_bench.bench import proc

from tests.harness import until, with_each

ROOT = Path(__file__).resolve().parents[2]
HERD = ("benches.herd", "--dry", "--classes", "sync", "--workers", "2", "--rounds", "1000")
TABLE = ("benches.cases", "--quick", "--only", "hello", "--servers", "tricorn sync", "--seconds", "60", "--rounds", "1")


@with_each(
    ("words", "processes", "number"),
    {
        "its own servers, killed": (HERD, 5, signal.SIGKILL),
        "its own servers, terminated": (HERD, 5, signal.SIGTERM),
        "those of tricorn bench, killed": (TABLE, 3, signal.SIGKILL),
    },
)
def test_no_server_is_left(words: tuple[str, ...], processes: int, number: signal.Signals, tmp_path: Path) -> None:
    more = ("--python", sys.executable, "--folder", str(tmp_path)) if words is TABLE else ()
    benchmark = subprocess.Popen(
        [sys.executable, "-m", *words, *more], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: len(proc.descendants(benchmark.pid)) >= processes, "the servers run")
        below = proc.descendants(benchmark.pid)
        benchmark.send_signal(number)
        benchmark.wait(10)
        until(lambda: not any(map(proc.runs, below)), "they have ended")
    finally:
        benchmark.kill()
        benchmark.wait()
