"""What does a client weigh that waits, and does it hinder the others?  python -m benches.idle --help

One worker. connections: kept alive and idle. sleepers: all have asked at once for a sleep of a second. websockets: open
and idle, then a message on each. Memory of the kernel (socket buffers) is not counted; it is the same for every server.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import AbstractContextManager

from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.bench.servers import ASGI, WSGI

from benches.cases.table import GRANIAN, GUNICORN, UVICORN
from benches.harness import report
from benches.harness.load import good, send
from benches.harness.process import DidNotServe, Server
from benches.harness.servers import PATIENT, Figures, Found, in_turns, serving, spent, weigh
from benches.idle.crowd import HEAD, MESSAGE, Crowd

PATIENCE = 60.0
SLEEP, LONG_SLEEP = 1.0, 8.0
"""Seconds; the second is long enough for every server to have begun all requests before the first is over."""

MANY = f"{PATIENT} --backlog 4096"
WSGI_SERVERS = {
    "tricorn-sync": f"tricorn sync -w 1 {MANY}",
    "tricorn-gthread": f"tricorn gthread -w 1 --threads 4 {MANY}",
    "tricorn-gevent": f"tricorn gevent -w 1 {MANY}",
    "tricorn-eventlet": f"tricorn eventlet -w 1 {MANY}",
    "gunicorn-gthread": f"gunicorn gthread -w 1 --threads 4 {MANY}",
    "gunicorn-gevent": f"gunicorn gevent -w 1 {MANY}",
    **{name: name for name in ("fastwsgi", "bjoern", "fastpysgi", "waitress")},
}
ASGI_SERVERS = {
    "tricorn-asgi": f"tricorn asgi -w 1 {MANY}",
    "uvicorn": f"{UVICORN} --timeout-keep-alive 600 --backlog 4096 --ws websockets",
    "granian": f"{GRANIAN} --ws --backlog 4096",
    "gunicorn-asgi": f"{GUNICORN} {MANY}",
}
GREEN = ("gevent", "eventlet")


def main() -> int:
    parser = report.options("idle", __doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--count", type=int, default=10_000, help="of clients")
    parser.add_argument("--rounds", type=int, default=3)
    parts = {part: (f"{{count:,}} clients, one worker: {part}", measured) for part, measured in PARTS.items()}
    report.measure(report.begin(parser), "Clients that wait", parts)
    return 0


def started(line: str, found: Found) -> AbstractContextManager[Server]:
    interface = ASGI if line in ASGI_SERVERS.values() else WSGI
    return serving(line, f"benches.apps.{interface.lower()}:app", found, interface)


def connections(arguments: argparse.Namespace) -> Found:
    def one_round(line: str, found: Found) -> Figures:
        with started(line, found) as server:
            before = good(send(server.port, seconds=2))
            empty = weigh(server)
            with Crowd(server.port, arguments.count) as crowd:
                time.sleep(0.5)
                full = weigh(server)
                during = send(server.port, seconds=2)
                crowd.ask(HEAD % (b"/", b""))
                crowd.answers(PATIENCE)  # all are still held
        return {
            **weights(arguments.count, "connection", empty, full),
            "req/s without": before / 2,
            "req/s with": good(during) / 2,
            "p99 ms with": during.latency["p99"] * 1e3,
        }

    return in_turns({**WSGI_SERVERS, **ASGI_SERVERS}, arguments, one_round)


def weights(count: int, what: str, empty: float, full: float) -> Figures:
    return {"MiB empty": empty, f"MiB all {what}s": full, f"KiB per {what}": (full - empty) / count * 1024}


def sleepers(arguments: argparse.Namespace) -> Found:
    """One turn for time. Then requests that sleep longer, so that all of them wait while the worker is weighed."""

    def one_round(line: str, found: Found) -> Figures:
        with started(line, found) as server:
            empty = weigh(server)
            with Crowd(server.port, arguments.count) as crowd:
                before = spent(server)
                crowd.ask(sleep_of(SLEEP))
                timed = crowd.answers(PATIENCE)
                cpu = spent(server) - before
                crowd.ask(sleep_of(LONG_SLEEP))
                rest(server, LONG_SLEEP / 2)
                waiting = weigh(server)
                whole = crowd.answers(PATIENCE)
        if whole.last > 2 * LONG_SLEEP:
            raise DidNotServe(f"let only some sleep at once: the last answer came after {whole.last:.1f} s")
        return {
            "all answered after s": timed.last,
            "CPU µs/req": cpu / arguments.count * 1e6,
            **weights(arguments.count, "sleeper", empty, waiting),
            "clients' CPU s": timed.cpu,
        }

    green = {name: line for name, line in WSGI_SERVERS.items() if Configuration.parse(line).worker_class in GREEN}
    return in_turns({**green, **ASGI_SERVERS}, arguments, one_round)


def sleep_of(seconds: float) -> bytes:
    return HEAD % (b"/work?us=%d" % round(seconds * 1e6), b"")


def rest(server: Server, patience: float) -> None:
    """Until the server has begun what was asked, and hardly uses its processor any more."""
    deadline = time.monotonic() + patience
    before = spent(server)
    while time.monotonic() < deadline:
        time.sleep(0.2)
        now = spent(server)
        if now - before < 0.02:
            return
        before = now
    raise DidNotServe(f"used its processor without a pause for {patience:g} s")


def websockets(arguments: argparse.Namespace, *, deflate: bool = False) -> Found:
    def one_round(line: str, found: Found) -> Figures:
        with started(line, found) as server:
            with Crowd(server.port, 1, websocket=True, deflate=deflate) as one:  # what is made only for the first
                one.ask(MESSAGE)
                one.answers(PATIENCE)
            empty, before = weigh(server), spent(server)
            with Crowd(server.port, arguments.count, websocket=True, deflate=deflate) as crowd:
                opened, after = weigh(server), spent(server)
                crowd.ask(MESSAGE)
                crowd.answers(PATIENCE)
                echoed = spent(server)
                rest(server, 5.0)
                used = weigh(server)
        return {
            "deflate": "yes" if crowd.deflate else "no",
            **weights(arguments.count, "WebSocket", empty, opened),
            "KiB after a message": (used - empty) / arguments.count * 1024,
            "CPU µs to open": (after - before) / arguments.count * 1e6,
            "CPU µs for a message": (echoed - after) / arguments.count * 1e6,
        }

    return in_turns(ASGI_SERVERS, arguments, one_round)


def offered(arguments: argparse.Namespace) -> Found:
    """The same with the offer of permessage-deflate that browsers make."""
    return websockets(arguments, deflate=True)


PARTS = {"connections": connections, "sleepers": sleepers, "websockets": websockets, "deflate": offered}

if __name__ == "__main__":
    sys.exit(main())
