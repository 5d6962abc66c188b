"""Which memory do workers share that load the application themselves, are forked of the arbiter, or of a mold?

python -m benches.sharing --help

Eight workers of three applications, started, asked so many requests, and weighed: PSS of all processes of the server,
the arbiter and the mold included; and of a worker PSS, USS (its own), and what it shares (RSS - USS). Half of the
requests come when workers that are to be replaced (`refork`) have been.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from tricorn.workers.registry import REFORKED
from tricorn_bench.bench import proc
from tricorn_bench.bench.servers import ASGI, WSGI

from benches.harness import report
from benches.harness.load import good, send
from benches.harness.process import BENCH_PYTHON, Server
from benches.harness.servers import Figures, Found, in_turns, serving, weigh

WORKERS = 8
PAUSE = 3.0
"""Seconds, in which a worker is replaced if more are to be."""
REFORK = 200
"""Requests of a worker, of some 600 in the first half."""
MIB = 2**20
APPS = {
    "django": ("sync", "benches.sharing.django_site:app", WSGI),
    "fastapi": ("asgi", "benches.sharing.fastapi_shop:app", ASGI),
    "flask": ("sync", "benches.sharing.flask_table:app", WSGI),
}
HEADINGS = {
    "django": "Django, {count:,} requests",
    "fastapi": "FastAPI with pydantic, {count:,} requests",
    "flask": "Flask with SQLAlchemy and a table of 200 MB, {count:,} requests",
}


def main() -> int:
    parser = report.options("sharing", __doc__)
    parser.add_argument("--parts", nargs="+", choices=APPS, default=list(APPS))
    parser.add_argument("--count", type=int, default=10_000, help="of requests")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--python", default=str(BENCH_PYTHON), help="of the servers")
    parts = {part: (HEADINGS[part], measured(part)) for part in APPS}
    report.measure(report.begin(parser), f"Memory of {WORKERS} workers", parts)
    return 0


def measured(part: str) -> Any:
    worker_class, application, interface = APPS[part]

    def of_part(arguments: Any) -> Found:
        def one_round(line: str, found: Found) -> Figures:
            with serving(line, application, found, interface, python=arguments.python) as server:
                until_all_serve(server)
                begun = weigh(server)
                asked = 0
                for _ in range(2):
                    asked += good(send(server.port, seconds=None, requests=arguments.count // 2))
                    until_all_serve(server)
                return {"MiB at the start": begun, **weights(server), "requests": asked}

        usual = f"{worker_class} -w {WORKERS}"
        lines = {
            "tricorn": f"tricorn {usual}",
            "tricorn --preload": f"tricorn {usual} --preload",
            "tricorn --mold": f"tricorn {usual} --mold",
            "gunicorn --preload": f"gunicorn {usual} --preload",
        }
        if worker_class in REFORKED:
            lines["tricorn --refork"] = f"tricorn {usual} --mold --refork {REFORK}"
        return in_turns(lines, arguments, one_round)

    return of_part


def until_all_serve(server: Server) -> None:
    """Until the workers are there, and the memory of all processes does not grow any more: they have booted."""
    while len(workers_of(server)) < WORKERS:
        time.sleep(0.5)
    before, now = 0.0, weigh(server)
    while abs(now - before) > 0.01 * now:
        time.sleep(PAUSE)
        before, now = now, weigh(server)


def workers_of(server: Server) -> list[int]:
    """Both servers say in the titles of their processes which are workers (setproctitle)."""
    return [pid for pid in server.pids() if "worker" in proc.name(pid)]


def weights(server: Server) -> Figures:
    sizes = {pid: proc.memory(pid) for pid in server.pids()}
    workers = [sizes[pid] for pid in workers_of(server)]
    return {
        "MiB in all": sum(each.pss for each in sizes.values()) / MIB,
        "PSS of a worker": statistics.mean(each.pss for each in workers) / MIB,
        "USS": statistics.mean(each.private for each in workers) / MIB,
        "shared": statistics.mean(each.rss - each.private for each in workers) / MIB,
    }


if __name__ == "__main__":
    sys.exit(main())
