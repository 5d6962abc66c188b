"""hey: so many clients at once, each with requests of its own, and when every one of them was answered."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Seen(NamedTuple):
    """`errors` are requests without an answer, or with another one than 200."""

    requests: int
    seconds: float
    errors: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float

    @property
    def per_second(self) -> float:
        return (self.requests - self.errors) / self.seconds


def need() -> None:
    if shutil.which("hey") is None:
        sys.exit("hey is missing, the load generator of this benchmark: apt-get install hey")


def command(requests: int, clients: int, path: str, port: int | str) -> list[str]:
    return ["hey", "-n", str(requests), "-c", str(clients), "-t", "60", "-o", "csv", f"http://127.0.0.1:{port}{path}"]


def run(requests: int, clients: int, path: str, port: int, before: Callable[[], None] | None = None) -> Seen:
    done = subprocess.run(
        command(requests, clients, path, port),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        preexec_fn=before,
    )
    return read(done.stdout, requests)


def read(table: str, requests: int) -> Seen:
    """The line of a request: how long it took, and in the last column when it began. One without an answer has none."""
    rows = list(csv.DictReader(io.StringIO(table)))
    good = sorted(float(row["response-time"]) for row in rows if row["status-code"] == "200")
    if not good:
        return Seen(requests, 1.0, requests, 0.0, 0.0, 0.0, 0.0)
    seconds = max(float(row["offset"]) + float(row["response-time"]) for row in rows)
    return Seen(
        requests=requests,
        seconds=seconds,
        errors=requests - len(good),
        p50_ms=_quantile(good, 0.5) * 1e3,
        p90_ms=_quantile(good, 0.9) * 1e3,
        p99_ms=_quantile(good, 0.99) * 1e3,
        max_ms=good[-1] * 1e3,
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
