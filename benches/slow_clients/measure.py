"""One worker, a healthy client, and slow ones beside it: what the healthy one has seen, as figures and as a table."""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benches.end_to_end.servers import SERVERS, Kind, kind
from benches.harness import environment, report
from benches.harness.process import LOAD_CORE, ROOT, DidNotServe, Server, free_port, pinned

APPLICATION = "benches.end_to_end.apps:upload"
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
PATIENCE = 2.0
RATE = 100

PLENTY = "--worker-connections 20000"
KINDS = [
    kind("tricorn-sync", f"tricorn sync -w 1 {PLENTY}"),
    kind("tricorn-gthread", f"tricorn gthread -w 1 --threads 4 {PLENTY}"),
    kind("tricorn-gevent", f"tricorn gevent -w 1 {PLENTY}"),
    kind("tricorn-eventlet", f"tricorn eventlet -w 1 {PLENTY}"),
    kind("gunicorn-sync", "gunicorn sync -w 1"),
    kind("gunicorn-gthread", f"gunicorn gthread -w 1 --threads 4 {PLENTY}"),
    kind("gunicorn-gevent", f"gunicorn gevent -w 1 {PLENTY}"),
    *[other for other in SERVERS if other.name in ("waitress", "granian", "bjoern", "fastwsgi", "fastpysgi")],
]


def measure(kind: Kind, arguments: argparse.Namespace, commands: dict[str, str]) -> dict[str, Any]:
    failures = environment.installation_failures()
    if kind.package in failures:
        raise DidNotServe(f"could not be installed: {failures[kind.package]}")
    port = free_port()
    command = kind.command(APPLICATION, port, None)
    commands[kind.name] = report.shown(command, port)
    with Server(command, port):
        alone = healthy_client(port, arguments.seconds / 2)
        with slow_clients(port, arguments.heads, arguments.bodies):
            beside = healthy_client(port, arguments.seconds)
    return {"alone": alone, "beside": beside}


@contextmanager
def slow_clients(port: int, heads: int, bodies: int) -> Iterator[None]:
    command = [sys.executable, "-m", "benches.slow_clients.dribble", str(port), str(heads), str(bodies)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, preexec_fn=lambda: pinned(LOAD_CORE))
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise DidNotServe("the slow clients did not start")
        yield
    finally:
        process.kill()
        process.communicate()


def healthy_client(port: int, seconds: float) -> dict[str, float | None]:
    """Latencies in ms. A request without a whole answer within PATIENCE seconds has failed."""
    latencies: list[float] = []
    failed = 0
    start = time.monotonic()
    due = start
    while (now := time.monotonic()) < start + seconds:
        if now < due:
            time.sleep(due - now)
        asked = time.perf_counter()
        try:
            ask(port)
        except OSError:
            failed += 1
        else:
            latencies.append((time.perf_counter() - asked) * 1e3)
        due = max(due + 1 / RATE, time.monotonic() - 1)
    if len(latencies) < 2:
        return {
            "answered": len(latencies),
            "failed": failed,
            "p50": None,
            "p99": None,
            "max": None,
        }
    percentiles = statistics.quantiles(latencies, n=100, method="inclusive")
    worst = max(latencies)
    return {"answered": len(latencies), "failed": failed, "p50": percentiles[49], "p99": percentiles[98], "max": worst}


def ask(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(REQUEST)
        received = b""
        while piece := connection.recv(4096):
            received += piece
        if not received.startswith(b"HTTP/1.1 200"):
            raise ConnectionError("no answer")


def milliseconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.2f}"


def render(results: dict[str, Any], arguments: argparse.Namespace) -> str:
    rows = []
    for name, result in results.items():
        if "absent" not in result:
            alone, beside = result["alone"], result["beside"]
            cells = [milliseconds(part[key]) for part in (alone, beside) for key in ("p50", "p99")]
            rows.append([name, *cells, milliseconds(beside["max"]), str(beside["answered"]), str(beside["failed"])])
    header = [
        "server",
        "p50 ms alone",
        "p99 ms alone",
        "p50 ms beside",
        "p99 ms beside",
        "max ms",
        "answered",
        "failed",
    ]
    lines = [f"* {name}: {result['absent']}" for name, result in results.items() if "absent" in result]
    title = f"### A healthy client beside {arguments.heads} slow heads and {arguments.bodies} slow bodies, one worker"
    return "\n\n".join([title, report.table(header, rows), *(["\n".join(lines)] if lines else [])])
