"""wrk, pinned to a core of its own, and what it saw as numbers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

from benches.harness.process import LOAD_CORE, pinned

REPORT = """
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\\nJSON {"requests": %d, "micros": %d, "bytes": %d, "p50": %.1f, "p90": %.1f, "p99": %.1f, "max": %.1f, ' ..
    '"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}\\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(90),
    latency:percentile(99), latency.max, errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
"""


class Load(NamedTuple):
    """What wrk is told: no function is called per request, so the load generator stays at its cheapest."""

    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    body_bytes: int = 0
    body: str = ""

    def script(self) -> str:
        lines = [f'wrk.method = "{self.method}"']
        lines += [f'wrk.headers["{name}"] = {json.dumps(value)}' for name, value in self.headers]
        if self.body:
            lines.append(f"wrk.body = [==[{self.body}]==]")
        elif self.body_bytes:
            lines.append(f'wrk.body = string.rep("x", {self.body_bytes})')
        return "\n".join(lines) + REPORT


class Seen(NamedTuple):
    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    errors: int
    cpu: float

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


def need() -> None:
    if shutil.which("wrk") is None:
        sys.exit("wrk is missing, the load generator of the benchmarks: apt-get install wrk")


def command(connections: int, seconds: float, path: str, port: int | str) -> list[str]:
    return ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--timeout", "10s", f"http://127.0.0.1:{port}{path}"]


def run(load: Load, port: int, connections: int, seconds: float) -> Seen:
    # wrk reads whole seconds only.
    seconds = max(1, round(seconds))
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(load.script())
        script.flush()
        words = command(connections, seconds, load.path, port)
        before = os.times()
        done = subprocess.run(
            [*words[:1], "-s", script.name, *words[1:]],
            capture_output=True,
            text=True,
            timeout=seconds + 30,
            check=True,
            preexec_fn=lambda: pinned(LOAD_CORE),
        )
        after = os.times()
    report = json.loads(done.stdout.rpartition("\nJSON ")[2])
    return Seen(
        requests=report["requests"],
        seconds=report["micros"] / 1e6,
        p50_ms=report["p50"] / 1e3,
        p99_ms=report["p99"] / 1e3,
        max_ms=report["max"] / 1e3,
        errors=sum(report[kind] for kind in ("connect", "read", "write", "status", "timeout")),
        cpu=after.children_user + after.children_system - before.children_user - before.children_system,
    )
