"""What do a hostile client of the control socket and a scrape cost?  python -m benches.operations --help

    control   how long a turn of the arbiter's loop is held up by clients of the control socket that mean no good
    scrape    how soon `/metrics` is answered: at rest, while every worker is stuck in C with the GIL, with 100 workers

Each prints a table. The processor's time (`CPU`) is what the code takes; the clock's has other work of the machine in
it. The first requests of a server make the arbiter import modules: a column of its own.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing import Process
from pathlib import Path

from tricorn.arbiter.control.listener import MOST_CLIENTS
from tricorn_bench.bench.report import layout

from benches.harness.process import Server, become_generator, before_other_work, free_port
from benches.operations.hostile import CLIENTS

STUCK = "benches.operations.stuck:app"
BOOT = 60.0
"""Seconds until all workers serve, or are stuck."""


def main() -> int:
    parser = argparse.ArgumentParser("benches.operations", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("control", "scrape"))
    parser.add_argument("--seconds", type=float, default=3.0, help="of each kind of client (default: 3)")
    parser.add_argument("--workers", type=int, default=8, help="of the server that clients disturb (default: 8)")
    parser.add_argument("--scrapes", type=int, default=300, help="of each state (default: 300)")
    parser.add_argument("--most-workers", type=int, default=100, help="whose pages are scraped (default: 100)")
    parser.add_argument("--realtime", action="store_true", help="before all other work of the machine (root only)")
    given = parser.parse_args()
    if given.realtime:
        before_other_work()
    become_generator()
    if given.only != "scrape":
        control(given.seconds, given.workers)
    if given.only != "control":
        scrape(given.scrapes, given.most_workers)
    return 0


def control(seconds: float, workers: int) -> None:
    rows = [_disturbed(name, client, seconds, workers) for name, client in CLIENTS.items()]
    head = (
        "clients",
        "turns",
        "CPU of a turn: p50",
        "p99",
        "most",
        "for each client: p99",
        "clock: p50",
        "imports, once",
    )
    print(f"A turn of the arbiter's loop, {workers} workers, {MOST_CLIENTS} clients at most:\n")
    print(layout.markdown(head, rows))


def _disturbed(name: str, client: Callable[[str, float], None], seconds: float, workers: int) -> list[str]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)  # another user connects, too
    environment = {"BENCH_WORKERS": str(workers), "BENCH_SOCKET": f"{folder}/ctl", "BENCH_TURNS": f"{folder}/turns"}
    port = free_port()
    command = [sys.executable, "-m", "tricorn", "-c", "python:benches.operations.arbiter_turns"]
    try:
        with Server([*command, "-b", f"127.0.0.1:{port}", STUCK], port, environment):
            process = Process(target=client, args=(environment["BENCH_SOCKET"], time.monotonic() + seconds))
            process.start()
            process.join(seconds + 20)
            process.kill()
            if process.exitcode:
                sys.exit(f"{name}: the client ended with {process.exitcode}")
        noted = json.loads((folder / "turns").read_text())
    finally:
        shutil.rmtree(folder)
    imports = sum(cpu for _, cpu, _, is_importing in noted if is_importing)
    noted = [each for each in noted if not each[-1]]
    clock, cpu, served, _ = zip(*noted, strict=True)
    each = [one / clients for one, clients in zip(cpu, served, strict=True)]
    return [name, str(len(noted)), *_spread(cpu), _spread(each)[1], _spread(clock)[0], _spread([imports])[0]]


def _spread(nanoseconds: Sequence[float]) -> list[str]:
    """The median, the 99th percentile and the most, in microseconds."""
    found = sorted(nanoseconds)
    return [f"{found[min(len(found) - 1, int(len(found) * share))] / 1e3:,.0f} µs" for share in (0.5, 0.99, 1.0)]


def scrape(count: int, most_workers: int) -> None:
    rows = []
    for workers, is_stuck in ((2, False), (2, True), (most_workers, False), (most_workers, True)):
        taken, size = _scraped(workers, is_stuck, count)
        rows.append([str(workers), "stuck in C with the GIL" if is_stuck else "at rest", *_spread(taken), f"{size:,}"])
    print(f"{count} scrapes of /metrics over one connection, one after another:\n")
    print(layout.markdown(("workers", "all of them are", "p50", "p99", "most", "bytes"), rows))


def _scraped(workers: int, is_stuck: bool, count: int) -> tuple[list[int], int]:
    """Nanoseconds of each scrape, and how long the last answer was."""
    port, admin = free_port(), free_port()
    command = [
        sys.executable,
        "-m",
        "tricorn",
        "-k",
        "sync",
        "-w",
        str(workers),
        "-b",
        f"127.0.0.1:{port}",
        "--preload",
    ]
    command += [
        "--admin-bind",
        f"127.0.0.1:{admin}",
        "--timeout",
        "0",
        "--graceful-timeout",
        "1",
        "--no-control-socket",
    ]
    with Server([*command, STUCK], port), ExitStack() as held:
        until = time.monotonic() + BOOT
        while _gauge(admin, 'tricorn_workers{state="serving"}') < workers:
            _expect(time.monotonic() < until, f"{workers} workers do not serve")
            time.sleep(0.05)
        for running in range(1, workers + 1) if is_stuck else ():
            client = held.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.sendall(b"GET /c HTTP/1.1\r\nHost: t\r\n\r\n")
            while _gauge(admin, "tricorn_requests_running") < running:
                _expect(time.monotonic() < until, f"{running} workers do not become stuck")
                time.sleep(0.002)
        with socket.create_connection(("127.0.0.1", admin)) as wire:
            taken, size = [], 0
            for _ in range(count):
                began = time.perf_counter_ns()
                size = len(_answer(wire))
                taken.append(time.perf_counter_ns() - began)
        _expect(not is_stuck or _gauge(admin, "tricorn_requests_running") == workers, "all are stuck to the end")
    return taken, size


def _expect(condition: bool, sentence: str) -> None:
    if not condition:
        sys.exit(f"not measured: {sentence}")


def _answer(wire: socket.socket) -> bytes:
    """The body of one scrape."""
    wire.sendall(b"GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n")
    data = b""
    while b"\r\n\r\n" not in data:
        data += wire.recv(1 << 18)
    head, _, body = data.partition(b"\r\n\r\n")
    (length,) = re.findall(rb"(?i)content-length: (\d+)", head)
    while len(body) < int(length):
        body += wire.recv(1 << 18)
    return body


def _gauge(admin: int, name: str) -> float:
    with socket.create_connection(("127.0.0.1", admin)) as wire:
        text = _answer(wire).decode()
    return next((float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} ")), 0.0)


if __name__ == "__main__":
    sys.exit(main())
