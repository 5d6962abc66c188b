"""What does TLS cost, and what do established clients notice of handshakes?  python -m benches.tls --help

One worker on a core of its own. hello: kept alive, without TLS and with it. connect: new connection for each request,
with full handshakes and resumed ones, of an ECDSA and an RSA certificate. down: 100 MiB, in pieces and from a file.
idle: memory of connections, in one round. flood: latency of kept connections while others shake hands. Clients offer
what browsers prefer, TLS_AES_128_GCM_SHA256 and X25519; what the suite that OpenSSL's clients prefer and X25519MLKEM768
cost is said beside it, the latter where a server knows it.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from functools import partial
from typing import Any

from tricorn.record import replace
from tricorn_bench.bench import proc
from tricorn_bench.bench.servers import Certificate, certificate
from tricorn_bench.load import LoadError, Plan, Replay, Result, Target, Tls, run

from benches.harness import long_file, report
from benches.harness.load import CONNECTIONS, good
from benches.harness.process import LOAD_CORE, DidNotServe, Server, become_generator
from benches.harness.servers import Figures, Found, in_turns, raw, spent, table, weigh
from benches.tls.servers import LIMIT, OF_ASGI, SERVERS, started

OFFERED = Tls(verify=False, post_quantum=False, suites=("TLS_AES_128_GCM_SHA256",))
"""No certificate is checked: it is the run's own."""

MOST_HANDSHAKES = 8
"""Connections at a time that shake hands: enough for every server to be busy."""
DOWNLOADS = 4
OPENING = 800
"""New connections a second that will be idle."""
KEPT, ASKED = 8, 200
"""Connections of the clients that are established, and requests a second of them all."""
FLOOD = 500
"""New handshakes a second."""
PATIENCE = 120.0


class Pairs:
    """The certificates of the run."""

    def __init__(self, ecdsa: Certificate, rsa: Certificate) -> None:
        self.ecdsa, self.rsa = ecdsa, rsa


def main() -> int:
    parser = report.options("tls", __doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--count", type=int, default=10_000, help="of idle connections")
    parser.add_argument("--seconds", type=float, default=2.0, help="of load in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--quick", action="store_true", help="shows that it works: a short round, and nothing is written"
    )
    arguments = report.begin(parser)
    if arguments.quick:
        arguments.count, arguments.seconds, arguments.rounds, arguments.dry = 200, 0.5, 1, True
    long_file.make()
    become_generator()
    pages, data, commands = [], {}, {}
    with certificate("ecdsa") as ecdsa, certificate("rsa") as rsa:
        for part in arguments.parts:
            print(f"{part}:", flush=True)
            title, measured = PARTS[part]
            once = argparse.Namespace(**{**vars(arguments), "rounds": 1})
            turns = once if part == "idle" else arguments
            found = in_turns(SERVERS, turns, partial(measured, arguments, Pairs(ecdsa, rsa)))
            pages.append(table(title.format(arguments), found))
            data[part] = raw(found)
            commands.update(found.commands)
    report.conclude(arguments, "What TLS costs", commands, "\n\n".join(pages), data)
    return 0


def ask(server: Server, path: str = "/", *, tls: Tls | None = None, **plan: Any) -> Result:
    """From the load generator's core."""
    usual: dict[str, Any] = {"connections": CONNECTIONS, "timeout": 60.0, "cpus": (LOAD_CORE,)}
    scheme = "https" if server.secure else "http"
    target = Target(f"{scheme}://127.0.0.1:{server.port}{path}")
    try:
        return run(Plan(targets=(target,), tls=tls or OFFERED, **{**usual, **plan}))
    except LoadError as error:
        raise DidNotServe(str(error)) from error


def cost(server: Server, path: str = "/", **plan: Any) -> tuple[Result, float]:
    """What came, and CPU seconds of the server for each answer."""
    before = spent(server)
    result = ask(server, path, **plan)
    return result, (spent(server) - before) / good(result)


def hello(arguments: argparse.Namespace, pairs: Pairs, line: str, found: Found) -> Figures:
    figures: Figures = {}
    each = {}
    for name, pair in (("plain", None), ("TLS", pairs.ecdsa)):
        with started(line, found, pair) as server:
            ask(server, seconds=0.3)
            result, each[name] = cost(server, seconds=arguments.seconds)
        figures[f"req/s {name}"] = result.rate
        figures[f"CPU µs/req {name}"] = each[name] * 1e6
        figures[f"p99 ms {name}"] = result.latency["p99"] * 1e3
    figures["µs more"] = (each["TLS"] - each["plain"]) * 1e6
    figures["agreed"] = agreed(result)
    return figures


def agreed(result: Result) -> str:
    tls = result.tls or {}
    return " ".join(", ".join(tls[name]) for name in ("versions", "suites", "groups"))


def connect(arguments: argparse.Namespace, pairs: Pairs, line: str, found: Found) -> Figures:
    figures: Figures = {}
    usual: dict[str, Any] = {"keep_alive": False, "connections": MOST_HANDSHAKES, "seconds": arguments.seconds}
    with started(line, found, None) as server:
        _, each = cost(server, **usual)
        figures["plain: CPU µs"] = each * 1e6
    for name, pair in (("ECDSA", pairs.ecdsa), ("RSA", pairs.rsa)):
        with started(line, found, pair) as server:
            for kind in ("full", "resumed"):
                result, each = cost(server, tls=replace(OFFERED, resume=kind == "resumed"), **usual)
                handshakes = result.tls or {}
                if handshakes[kind]["count"] < 0.9 * result.answered:  # a server that gives no tickets
                    continue
                figures[f"{name} {kind}: CPU µs"] = each * 1e6
                figures[f"{name} {kind}: p50 ms"] = handshakes[kind]["latency"]["p50"] * 1e3
            if pair is pairs.ecdsa:
                tls = replace(OFFERED, resume=False)
                _, each = cost(server, tls=replace(tls, suites=("TLS_AES_256_GCM_SHA384",)), **usual)
                figures["ECDSA full with AES-256: CPU µs"] = each * 1e6
                result, each = cost(server, tls=replace(tls, post_quantum=True), **usual)
                if "X25519MLKEM768" in (result.tls or {})["groups"]:
                    figures["ECDSA full with ML-KEM: CPU µs"] = each * 1e6
    return figures


def down(_: argparse.Namespace, pairs: Pairs, line: str, found: Found) -> Figures:
    figures: Figures = {}
    for name, pair in (("plain", None), ("TLS", pairs.ecdsa)):
        with started(line, found, pair) as server:
            for path in ("/stream", "/file"):
                if (line == LIMIT and path == "/stream") or (line in OF_ASGI.values() and path == "/file"):
                    continue
                ask(server, path, requests=1, connections=1)
                result, each = cost(server, path, requests=DOWNLOADS, connections=2)
                if result["bytes"]["body"] != DOWNLOADS * long_file.LENGTH:
                    raise DidNotServe(f"sent {result['bytes']['body']:,} bytes for {DOWNLOADS} downloads")
                rate = DOWNLOADS * long_file.LENGTH / 2**20 / result.seconds
                figures[f"{path[1:]} {name}: MiB/s"] = rate
                figures[f"{path[1:]} {name}: CPU ms"] = each * 1e3
    return figures


def idle(arguments: argparse.Namespace, pairs: Pairs, line: str, found: Found) -> Figures:
    figures: Figures = {}
    for name, pair in (("plain", None), ("TLS", pairs.ecdsa)):
        with started(line, found, pair) as server:
            ask(server, seconds=0.3)
            empty = weigh(server)
            opened, done = threading.Event(), threading.Event()
            failed: list[BaseException] = []
            keeping = threading.Thread(target=_keep, args=(server, arguments.count, opened, done, failed))
            keeping.start()
            try:
                if not opened.wait(arguments.count / OPENING + PATIENCE) or failed:
                    raise DidNotServe(
                        f"has not taken {arguments.count:,} connections{f': {failed[0]}' if failed else ''}"
                    )
                time.sleep(1.0)
                there = proc.connections(server.port)
                full = weigh(server)
            finally:
                done.set()
                keeping.join()
            if there < arguments.count:
                raise DidNotServe(f"kept {there:,} of {arguments.count:,} idle connections")
        figures[f"KiB per connection {name}"] = (full - empty) / arguments.count * 1024
        figures[f"MiB {name}"] = full
    return figures


def _keep(
    server: Server, count: int, opened: threading.Event, done: threading.Event, failed: list[BaseException]
) -> None:
    """Opens so many connections, each by a request, and keeps them until it is told that it is done."""

    def look(progress: Any) -> bool:
        if progress["answered"] >= count:
            opened.set()
        return not done.is_set()

    opening = [Replay(number / OPENING, "GET", "/") for number in range(count)]
    last = Replay(count / OPENING + 2 * PATIENCE, "GET", "/")
    scheme = "https" if server.secure else "http"
    plan = Plan(
        targets=(Target(f"{scheme}://127.0.0.1:{server.port}/"),),
        tls=OFFERED,
        replay=(*opening, last),
        connections=count,
        opens_all=True,
        timeout=PATIENCE,
        cpus=(LOAD_CORE,),
    )
    try:
        run(plan, look)
    except BaseException as error:
        failed.append(error)
    finally:
        opened.set()


def flood(arguments: argparse.Namespace, pairs: Pairs, line: str, found: Found) -> Figures:
    """The clients that are established ask evenly; a handshake each two milliseconds comes from others."""
    seconds = 2 * arguments.seconds
    plan: dict[str, Any] = {
        "rate": float(ASKED),
        "poisson": True,
        "opens_all": True,
        "connections": KEPT,
        "seconds": seconds,
        "warmup_seconds": 0.5,
    }
    with started(line, found, pairs.ecdsa) as server:
        before = ask(server, **plan)
        good(before)
        flooded: list[Result] = []
        tls = replace(OFFERED, resume=False)
        flooding = threading.Thread(
            target=lambda: flooded.append(
                ask(
                    server,
                    tls=tls,
                    keep_alive=False,
                    rate=float(FLOOD),
                    connections=1000,
                    seconds=seconds + 1.0,
                    drain_seconds=1.0,
                )
            )
        )
        flooding.start()
        try:
            during = ask(server, **plan)
        finally:
            flooding.join()
    if not flooded or not during.answered:
        raise DidNotServe("answered nothing during the flood")
    shaken = flooded[0].tls or {}
    return {
        "p50 ms without": before.latency["p50"] * 1e3,
        "p99 ms without": before.latency["p99"] * 1e3,
        "p50 ms with": during.latency["p50"] * 1e3,
        "p99 ms with": during.latency["p99"] * 1e3,
        "errors": during.failed,
        "handshakes/s": shaken["full"]["count"] / flooded[0].seconds,
        "handshake p99 ms": (shaken["full"]["latency"] or {"p99": 0.0})["p99"] * 1e3,
    }


PARTS = {
    "hello": ("A hello over 64 connections that are kept alive", hello),
    "connect": ("A connection for each request, 8 at a time", connect),
    "down": ("100 MiB, four times over two connections", down),
    "idle": ("{0.count:,} idle connections", idle),
    "flood": (f"{ASKED} requests/s over {KEPT} kept connections, without and with {FLOOD} new handshakes/s", flood),
}

if __name__ == "__main__":
    sys.exit(main())
