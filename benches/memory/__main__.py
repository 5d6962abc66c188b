"""What does a worker weigh, and what does an idle connection?  python -m benches.memory --help

Workers: four, forked after the application was loaded, each having served requests. PSS counts a shared page once.
Connections: one worker holds thousands of idle keep-alive connections and goes on serving others at full speed.
Memory of the kernel (socket buffers) is not counted; it is the same for every server.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from tricorn.bench import proc

from benches.end_to_end.apps import hello
from benches.end_to_end.servers import SERVERS, Kind
from benches.end_to_end.servers import kind as like
from benches.harness import environment, load, report
from benches.harness.process import LOAD_CORE, DidNotServe, Server, free_port

APPLICATION = f"benches.end_to_end.apps:{hello.__name__}"
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n\r\n"
PATIENT = "--keep-alive 600 --worker-connections 20000"

PRELOADED = [
    like(f"{package}-{worker}", f"{package} {worker} -w 1 {options} --preload")
    for package in ("tricorn", "gunicorn")
    for worker, options in (("sync", ""), ("gthread", "--threads 4"))
]

HOLDERS = [
    like("tricorn-sync", f"tricorn sync -w 1 {PATIENT}"),
    like("tricorn-gthread", f"tricorn gthread -w 1 --threads 4 {PATIENT}"),
    like("gunicorn-gthread", f"gunicorn gthread -w 1 --threads 4 {PATIENT}"),
    like("gunicorn-gevent", f"gunicorn gevent -w 1 {PATIENT}"),
    *[other for other in SERVERS if other.name in ("fastwsgi", "bjoern", "fastpysgi", "granian", "waitress")],
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benches.memory", description=__doc__)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--servers", help="beginnings of names, comma separated")
    parser.add_argument("--name", default="memory", help="of the folder under benches/runs")
    parser.add_argument("--dry", action="store_true", help="write nothing to benches/runs")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.sched_setaffinity(0, {LOAD_CORE})
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    commands: dict[str, str] = {}
    workers = collect(PRELOADED, arguments, commands, preloaded_workers)
    connections = collect(HOLDERS, arguments, commands, idle_connections)
    body = f"{render_workers(workers, arguments.workers)}\n\n{render_connections(connections, arguments.connections)}"
    report.conclude(arguments, "Memory", commands, body, {"workers": workers, "connections": connections})
    return 0


def collect(
    kinds: Sequence[Kind], arguments: argparse.Namespace, commands: dict[str, str], measure: Any
) -> dict[str, Any]:
    failures = environment.installation_failures()
    results: dict[str, Any] = {}
    for kind in kinds:
        if arguments.servers and not kind.name.startswith(tuple(arguments.servers.split(","))):
            continue
        try:
            if kind.package in failures:
                raise DidNotServe(f"could not be installed: {failures[kind.package]}")
            results[kind.name] = measure(kind, arguments, commands)
        except DidNotServe as reason:
            results[kind.name] = {"absent": str(reason)}
        print(f"  {measure.__name__.replace('_', ' ')}: {kind.name}: {results[kind.name]}", flush=True)
    return results


def preloaded_workers(kind: Kind, arguments: argparse.Namespace, commands: dict[str, str]) -> dict[str, Any]:
    port = free_port()
    command = kind.command(APPLICATION, port, None)
    command[command.index("-w") + 1] = str(arguments.workers)
    commands[f"{kind.name}, preloaded"] = report.shown(command, port)
    with Server(command, port) as server:
        load.run(load.Load(), port, 64, 2)
        processes = server.pids()
        workers = [pid for pid in processes if pid != server.process.pid]
        if len(workers) != arguments.workers:
            raise DidNotServe(f"{len(workers)} worker processes instead of {arguments.workers}")
        return {
            "worker_pss": sum(proc.memory(pid).pss for pid in workers) // len(workers),
            "worker_private": sum(proc.memory(pid).private for pid in workers) // len(workers),
            "total_pss": sum(proc.memory(pid).pss for pid in processes),
        }


def idle_connections(kind: Kind, arguments: argparse.Namespace, commands: dict[str, str]) -> dict[str, Any]:
    port = free_port()
    command = kind.command(APPLICATION, port, None)
    commands[f"{kind.name}, idle connections"] = report.shown(command, port)
    with Server(command, port) as server:
        before = load.run(load.Load(), port, 64, 2)
        empty = total(server)
        connections = hold(port, arguments.connections)
        try:
            time.sleep(0.5)
            full = total(server)
            during = load.run(load.Load(), port, 64, 3)
            return {
                "held": sum(is_open(connection) for connection in connections),
                "pss_per_connection": (full.pss - empty.pss) / arguments.connections,
                "rss_per_connection": (full.rss - empty.rss) / arguments.connections,
                "per_second_before": before.per_second,
                "per_second_during": during.per_second,
                "p99_ms_during": during.p99_ms,
            }
        finally:
            for connection in connections:
                connection.close()


def total(server: Server) -> proc.Memory:
    memories = [proc.memory(pid) for pid in server.pids()]
    return proc.Memory(*(sum(column) for column in zip(*memories, strict=True)))


def hold(port: int, count: int) -> list[socket.socket]:
    """Connections that have had one answer each and wait for their next request."""
    connections: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port), timeout=10)
            connections.append(connection)
            connection.sendall(REQUEST)
            received = b""
            while b"Hello, World!" not in received:
                piece = connection.recv(4096)
                if not piece:
                    raise DidNotServe(f"closed connection {len(connections)} without an answer")
                received += piece
    except OSError as error:
        for connection in connections:
            connection.close()
        raise DidNotServe(f"connection {len(connections)}: {error}") from error
    return connections


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def render_workers(results: dict[str, Any], workers: int) -> str:
    rows = [
        [name, *(f"{result[key] / 2**20:.1f}" for key in ("worker_pss", "worker_private", "total_pss"))]
        for name, result in results.items()
        if "absent" not in result
    ]
    header = ["server", "PSS MiB per worker", "private MiB per worker", "PSS MiB in all"]
    return f"### {workers} preloaded workers\n\n{report.table(header, rows)}{absent(results)}"


def render_connections(results: dict[str, Any], count: int) -> str:
    rows = [
        [
            name,
            f"{result['held']:,}",
            f"{result['pss_per_connection']:,.0f}",
            f"{result['rss_per_connection']:,.0f}",
            f"{result['per_second_before']:,.0f}",
            f"{result['per_second_during']:,.0f}",
            f"{result['p99_ms_during']:.2f}",
        ]
        for name, result in results.items()
        if "absent" not in result
    ]
    header = ["server", "still held", "PSS bytes each", "RSS bytes each", "req/s without", "req/s with", "p99 ms with"]
    return f"### {count:,} idle connections, one worker\n\n{report.table(header, rows)}{absent(results)}"


def absent(results: dict[str, Any]) -> str:
    lines = [f"* {name}: {result['absent']}" for name, result in results.items() if "absent" in result]
    return "\n\n" + "\n".join(lines) if lines else ""


if __name__ == "__main__":
    sys.exit(main())
