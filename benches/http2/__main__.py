"""What do clients of HTTP/2 notice of one another?  python -m benches.http2 --help

One worker, over cleartext. fair: 50 clients ask now and then, beside one connection that always has 100 requests
under way. upload: 20 MB from a client 50 ms away. idle: what a connection weighs that says nothing. attacks: what a
byte of an attacker costs the server.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.servers import ASGI, WSGI
from tricorn_bench.load import Http2

from benches.harness import report
from benches.harness.load import good, send
from benches.harness.process import DidNotServe, Server
from benches.harness.servers import Figures, Found, in_turns, serving, spent, weigh
from benches.http2.attacks import ATTACKS, attack
from benches.http2.idle import Crowd
from benches.http2.upload import Relay, upload

WORK = 2000
"""Microseconds of a request."""
POLITE, EACH = 50, 2.0
"""Clients, and how often each of them asks in a second: together a fifth of what a worker serves one by one."""
SERVERS = {
    "tricorn-sync": "tricorn sync -w 1",
    "tricorn-gthread": "tricorn gthread -w 1 --threads 4",
    "tricorn-asgi": "tricorn asgi -w 1",
    "granian-wsgi": "granian --workers 1 --http auto --blocking-threads 1",
    "granian-asgi": "granian --workers 1 --http auto --loop uvloop",
    "hypercorn": "hypercorn --worker-class uvloop",
    "gunicorn-gthread": "gunicorn gthread -w 1 --threads 4",
}
OF_WSGI = ("tricorn sync", "tricorn gthread", "granian --workers 1 --http auto --blocking", "gunicorn")
LENGTH, DELAY = 20 << 20, 0.05
WINDOWS = {"tricorn-64k": "tricorn asgi -w 1 --http2-max-window 65535"}


def main() -> int:
    parser = report.options("http2", __doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--count", type=int, default=5000, help="of idle connections")
    parser.add_argument("--seconds", type=float, default=3.0, help="of a load, and of an attack")
    parser.add_argument("--rounds", type=int, default=3)
    report.measure(report.begin(parser), "Clients of HTTP/2", PARTS)
    return 0


def started(line: str, found: Found) -> AbstractContextManager[Server]:
    interface = WSGI if line.startswith(OF_WSGI) else ASGI
    return serving(line, f"benches.apps.{interface.lower()}:app", found, interface, http2=True)


def path_of_work(line: str) -> str:
    """A coroutine that awaits nothing while it works, as one that computes."""
    return f"/{'work' if line.startswith(OF_WSGI) else 'compute'}?us={WORK}"


@contextmanager
def greedy(port: int, path: str) -> Iterator[None]:
    """One connection has 100 requests under way, for as long as the block runs."""
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            send(port, path, connections=1, http2=Http2(streams=100), seconds=0.5)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    time.sleep(0.3)
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def polite(port: int, path: str, seconds: float) -> float:
    """Their p99, in milliseconds."""
    plan: dict[str, Any] = {
        "connections": POLITE,
        "rate": POLITE * EACH,
        "poisson": True,
        "seconds": seconds,
        "any_connection": True,
    }
    result = send(port, path, http2=Http2(), drain_seconds=20.0, **plan)
    good(result)
    return float(result.latency["p99"]) * 1e3


def fair(arguments: argparse.Namespace) -> Found:
    def one_round(line: str, found: Found) -> Figures:
        path = path_of_work(line)
        with started(line, found) as server:
            alone = polite(server.port, path, arguments.seconds)
            with greedy(server.port, path):
                beside = polite(server.port, path, arguments.seconds)
        return {"p99 ms alone": alone, "p99 ms beside 100 streams": beside}

    return in_turns(SERVERS, arguments, one_round)


def far(arguments: argparse.Namespace) -> Found:
    def one_round(line: str, found: Found) -> Figures:
        with started(line, found) as server, Relay(server.port, DELAY / 2) as relay:
            upload(relay.port, 1 << 16)  # what is made for the first
            before = spent(server)
            seconds = upload(relay.port, LENGTH)
            return {"seconds": seconds, "CPU ms": (spent(server) - before) * 1e3}

    lines = {name: line for name, line in SERVERS.items() if not line.startswith("gunicorn")}
    return in_turns({**WINDOWS, **lines}, arguments, one_round)


def idle(arguments: argparse.Namespace) -> Found:
    def one_round(line: str, found: Found) -> Figures:
        with started(line, found) as server:
            with Crowd(server.port, 1):
                pass  # what is made for the first
            empty = weigh(server)
            with Crowd(server.port, arguments.count):
                full = weigh(server)
                time.sleep(1)  # what follows the last answer
                before = spent(server)
                time.sleep(3)
                used = spent(server) - before
        return {
            "KiB per connection": (full - empty) / arguments.count * 1024,
            "CPU ms/s while idle": used / 3 * 1e3,
        }

    return in_turns(SERVERS, arguments, one_round)


def attacked(arguments: argparse.Namespace) -> Found:
    def one_round(line: str, found: Found) -> Figures:
        figures: Figures = {}
        for name, bytes_of in ATTACKS.items():
            with started(line, found) as server:
                good(send(server.port, requests=10, seconds=None, connections=1, http2=Http2()))
                empty, before = weigh(server), spent(server)
                with Peak(server) as peak:
                    sent = attack(server.port, bytes_of, arguments.seconds)
                cost = (spent(server) - before) / max(1, sent.bytes) * 1e9
                try:
                    good(send(server.port, requests=10, seconds=None, connections=1, http2=Http2()))
                    figures |= {f"{name}: CPU ns/byte": cost, f"{name}: MiB": max(0.0, peak.most - empty)}
                except DidNotServe:
                    figures |= {f"{name}: CPU ns/byte": None, f"{name}: MiB": None}
        return figures

    arguments.rounds = 1
    lines = {name: line for name, line in SERVERS.items() if Configuration.parse(line).server != "gunicorn"}
    return in_turns(lines, arguments, one_round)


class Peak:
    """The most that a server weighs while the block runs, in MiB."""

    def __init__(self, server: Server) -> None:
        self.server, self.most, self.is_over = server, weigh(server), threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self) -> None:
        while not self.is_over.wait(0.2):
            self.most = max(self.most, weigh(self.server))

    def __enter__(self) -> Peak:  # noqa: PYI034 (typing.Self is younger than Python 3.10)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self.thread.join()


PARTS = {
    "fair": ("50 clients beside one connection of 100 streams", fair),
    "upload": ("20 MB from a client 50 ms away", far),
    "idle": ("{count:,} idle connections", idle),
    "attacks": ("Attacks", attacked),
}

if __name__ == "__main__":
    sys.exit(main())
