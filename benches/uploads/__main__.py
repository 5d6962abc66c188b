"""What does a healthy client notice of fast uploads?  python -m benches.uploads --help

One worker of each class. A healthy client asks every 50 ms over a connection of its own: first alone, then beside four
clients that upload one body after another as fast as the loopback takes it. Bodies of WSGI classes go to disk.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benches.harness import report
from benches.harness.process import ROOT, DidNotServe, Server, free_port
from benches.slow_clients.measure import ask

APPLICATIONS = {
    "sync": "wsgi_app",
    "gthread": "wsgi_app",
    "gevent": "wsgi_app",
    "eventlet": "wsgi_app",
    "asgi": "asgi_app",
    "tornado": "tornado_app",
    "aiohttp": "aiohttp_app",
}
EVERY = 0.05
CORES = (0, 1)


@contextmanager
def uploads(port: int, clients: int, mebibytes: int) -> Iterator[list[list[int]]]:
    """While the block runs; afterwards the list has what each client had sent, second by second."""
    command = [sys.executable, "-m", "benches.uploads.flood", str(port), str(clients), str(mebibytes)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    seen: list[list[int]] = []
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield seen
    finally:
        process.terminate()
        text, _ = process.communicate()
        seen += [[int(word) for word in line.split()] for line in text.splitlines()]


def healthy_client(port: int, seconds: float) -> list[float]:
    """Latencies in ms, the last one the highest."""
    latencies = []
    start = due = time.monotonic()
    while due < start + seconds:
        time.sleep(max(0.0, due - time.monotonic()))
        asked = time.perf_counter()
        try:
            ask(port)
        except OSError:
            latencies.append(float("inf"))
        else:
            latencies.append((time.perf_counter() - asked) * 1e3)
        due = max(due + EVERY, time.monotonic())
    return sorted(latencies)


def measure(worker_class: str, arguments: argparse.Namespace, commands: dict[str, str]) -> dict[str, Any]:
    port = free_port()
    command = [sys.executable, "-m", "tricorn", "-b", f"127.0.0.1:{port}", "-w", "1", "-k", worker_class]
    command += ["--threads", "4"] if worker_class == "gthread" else []
    command += [*arguments.options.split(), f"benches.uploads.{APPLICATIONS[worker_class]}:application"]
    commands[worker_class] = report.shown(command, port)
    with Server(command, port, cores=CORES):
        alone = healthy_client(port, arguments.seconds / 2)
        with uploads(port, arguments.clients, arguments.mebibytes) as sent:
            beside = healthy_client(port, arguments.seconds)
    last = sent[-1] if sent else [0]
    rates = [each / len(sent) / 1e6 for each in last]
    return {"alone": alone, "beside": beside, "rates": rates}


def render(results: dict[str, Any], arguments: argparse.Namespace) -> str:
    rows = []
    for name, result in results.items():
        if "absent" in result:
            rows.append([name, result["absent"], "", "", "", "", ""])
            continue
        cells = []
        for latencies in (result["alone"], result["beside"]):
            cells += [f"{latencies[len(latencies) // 2]:.1f}", f"{latencies[-1]:.1f}"]
        rates = result["rates"]
        rows.append([name, *cells, f"{sum(rates):.0f}", f"{min(rates):.0f} … {max(rates):.0f}"])
    header = ["class", "p50 ms alone", "max ms alone", "p50 ms beside", "max ms beside", "MB/s", "of one client"]
    title = f"### A healthy client beside {arguments.clients} uploads of {arguments.mebibytes} MiB, one worker"
    return f"{title}\n\n{report.table(header, rows)}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benches.uploads", description=__doc__)
    parser.add_argument("--classes", default=",".join(APPLICATIONS), help="comma separated")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--mebibytes", type=int, default=256, help="of one body")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--options", default="", help="more of the server's options")
    parser.add_argument("--name", default="uploads", help="of the folder under benches/runs")
    parser.add_argument("--dry", action="store_true", help="write nothing to benches/runs")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    commands: dict[str, str] = {}
    results: dict[str, Any] = {}
    for worker_class in arguments.classes.split(","):
        try:
            results[worker_class] = measure(worker_class, arguments, commands)
        except DidNotServe as reason:
            results[worker_class] = {"absent": str(reason)}
    report.conclude(arguments, "Fast uploads", commands, render(results, arguments), results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
