"""psycopg2 in greenlet workers, from outside: many queries at once, and a database that says no."""

from __future__ import annotations

import collections
import re
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.harness import Server, until
from tests.harness.needs import needs
from tests.harness.postgres import TOO_MANY, Postgres
from tests.harness.sibling import GrpcServer

needs("psycopg2")

MOST = 30
USABLE = MOST - 3

classes = pytest.mark.parametrize("worker_class", ["gevent", "eventlet"])


@pytest.fixture(scope="module")
def running() -> Iterator[Postgres]:
    with Postgres(MOST) as server:
        yield server


@pytest.fixture
def postgres(running: Postgres) -> Postgres:
    return running.rested()


def server_with(postgres: Postgres, worker_class: str, seconds: float = 0.5, **options: object) -> Server:
    needs(worker_class)
    env = {"TEST_DSN": postgres.dsn(tcp=True), "TEST_SECONDS": str(seconds)}
    return Server("database:application", worker_class=worker_class, env=env, **options)  # type: ignore[arg-type]


def at_once(server: Server, count: int, then: Callable[[], int] = int) -> tuple[collections.Counter[int], float]:
    """The statuses of `count` requests that are sent together, and how long that took; `then` says how many follow."""
    statuses: collections.Counter[int] = collections.Counter()
    lock = threading.Lock()

    def one() -> None:
        with server.connect(timeout=60) as wire:
            status = wire.get("/").status
        with lock:
            statuses[status] += 1

    def start(count: int) -> list[threading.Thread]:
        threads = [threading.Thread(target=one) for _ in range(count)]
        for thread in threads:
            thread.start()
        return threads

    began = time.monotonic()
    for thread in [*start(count), *start(then())]:
        thread.join()
    return statuses, time.monotonic() - began


@classes
@pytest.mark.parametrize("preload", [False, True])
def test_one_worker_waits_for_many_queries_at_once(worker_class: str, preload: bool, postgres: Postgres) -> None:
    options = {"preload": True} if preload else {}
    with server_with(postgres, worker_class, **options) as server:
        statuses, took = at_once(server, 20)
    assert statuses == {200: 20}
    assert took < 5, "ten seconds of queries, one after another"


@classes
def test_above_the_databases_limit_the_excess_fails_and_one_line_says_why(
    worker_class: str, postgres: Postgres
) -> None:
    """PostgreSQL refuses both of two that ask at once for the last: the excess comes when the others are in."""
    excess = 9

    def follow() -> int:
        until(lambda: sum("SELECT" in title for title in postgres.sessions()) == USABLE, "the database is full")
        return excess

    with server_with(postgres, worker_class, seconds=4, workers=2, worker_connections=50) as server:
        statuses, _ = at_once(server, USABLE, follow)
        server.log.wait(r"The database at .* refused")
        until(lambda: not postgres.sessions(), "all have ended")
        lines = server.log.matching(
            r"The database at (\S+) refused a worker (\d+) connections?: (.*?)\. This server holds (\d+)\. (.*)"
        )
    assert statuses == {200: USABLE, 500: excess}
    assert len(lines) == 1
    address, refused, text, held, arithmetic = lines[0].groups()
    assert address == f"127.0.0.1:{postgres.port}"
    assert 1 <= int(refused) <= excess, "those of one worker"
    assert re.match(TOO_MANY, text)
    # On a busy machine the first queries may have ended when the line is written.
    assert USABLE // 2 < int(held) <= USABLE
    assert arithmetic.startswith(
        "2 x 50 requests (workers x worker_connections) can use up to 100 connections at once;"
    )


@pytest.mark.parametrize("preload", [False, True])
def test_grpc_calls_wait_side_by_side(preload: bool) -> None:
    """gevent only. With preload its poller is chosen in the arbiter, and has to outlive the fork."""
    needs("gevent", "grpc")
    options = {"preload": True} if preload else {}
    with GrpcServer() as port:
        env = {"TEST_ADDRESS": f"127.0.0.1:{port}"}
        with Server("remote:application", worker_class="gevent", env=env, **options) as server:
            statuses, took = at_once(server, 15)
    assert statuses == {200: 15}
    assert took < 5, "seven seconds of calls, one after another"


@classes
def test_green_drivers_can_be_switched_off(worker_class: str, postgres: Postgres) -> None:
    if worker_class == "eventlet":
        pytest.skip("eventlet sets a callback itself when it patches")
    with server_with(postgres, worker_class, seconds=0.2, no_green_drivers=True) as server:
        statuses, took = at_once(server, 10)
    assert statuses == {200: 10}
    assert took > 2, "one after another"
    assert not re.search("blocks the whole worker", server.log.text)
