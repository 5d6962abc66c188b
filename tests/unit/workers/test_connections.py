"""Connections of pools are closed before a fork, and both sides connect again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from textwrap import dedent
from threading import Thread

import pytest

from tests.harness.interpreter import python
from tests.harness.key_value import memcached_server, redis_server
from tests.harness.needs import needs
from tests.harness.postgres import Postgres, postgres

needs(
    "django", "httpx", "psycopg", "psycopg2", "psycopg_pool", "pymemcache", "redis", "requests", "sqlalchemy", "valkey"
)

__all__ = ["postgres"]


class Echo(BaseHTTPRequestHandler):
    """Answers with the path, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.path[1:].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def echo_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def addresses(postgres: Postgres) -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        redis, memcached = str(stack.enter_context(redis_server())), str(stack.enter_context(memcached_server()))
        echo = stack.enter_context(echo_server())
        yield {
            "django": postgres.dsn(tcp=True),
            "sqlalchemy": postgres.url(tcp=True),
            "psycopg2": postgres.dsn(),
            "redis": redis,
            "memcached": memcached,
            "http": echo,
        }


CASES = {
    "django": ("django", "Django: 1"),
    "django_in_another_thread": ("django", "Django: 1"),
    "django_pool": ("django", "Django's pool: "),
    "sqlalchemy": ("sqlalchemy", "SQLAlchemy: 1"),
    "async_sqlalchemy": ("sqlalchemy", "SQLAlchemy: 1"),
    "psycopg2": ("psycopg2", "psycopg2: 2"),
    "redis": ("redis", "redis: 1"),
    "redis_of_one_connection": ("redis", "redis: 1"),
    "redis_blocking": ("redis", "redis: 1"),
    "valkey": ("redis", "valkey: 1"),
    "memcached": ("memcached", "Django's cache: 1"),
    "httpx": ("http", "httpx: 1"),
    "requests": ("http", "urllib3: 1"),
    "urllib3": ("http", "urllib3: 1"),
}


def in_process(code: str, *arguments: str) -> str:
    return python(code, *arguments, alias="gthread").stdout


@pytest.mark.parametrize("client", CASES)
def test_a_client_connects_again_on_both_sides_of_a_fork(client: str, addresses: dict[str, str]) -> None:
    server, closed = CASES[client]
    code = "import sys; from tests.unit.workers.forked_clients import main; main(*sys.argv[1:])"
    outcome = json.loads(in_process(code, client, addresses[server]))
    assert any("a connection to " in name for name in outcome["before"])
    assert [line.startswith(closed) for line in outcome["report"]] == [True], outcome["report"]


HELD = """
import sys
from tests.unit.workers.forked_clients import names
from tricorn.workers.connections import close_idle
from tricorn.workers.fork_audit import open_files

own = list(open_files())


def still_has_connections(count):
    assert (report := close_idle()) == [], report
    found = names(own)
    assert len(found) == count and all("a connection to " in name for name in found), found
"""


def test_a_connection_that_the_application_holds_stays_open(postgres: Postgres) -> None:
    code = """
    import psycopg, psycopg2
    for driver in (psycopg, psycopg2):
        connection = driver.connect(sys.argv[1])
        still_has_connections(1)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 5")
            assert cursor.fetchone() == (5,)
        connection.close()
    """
    in_process(HELD + dedent(code), postgres.dsn())


def test_connections_of_a_pool_that_are_in_use_stay_open(addresses: dict[str, str]) -> None:
    code = """
    import gc, httpx, urllib3
    from psycopg2.pool import SimpleConnectionPool
    from sqlalchemy import create_engine, text

    _, url, dsn, http = sys.argv
    pool = SimpleConnectionPool(1, 2, dsn)
    of_pool = pool.getconn()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg2:"))
    with (
        engine.connect() as connection,
        httpx.Client() as client,
        client.stream("GET", http + "/11") as response,
        urllib3.PoolManager() as manager,
        manager.request("GET", http + "/12", preload_content=False) as other,
    ):
        connection.execute(text("SELECT 1"))
        still_has_connections(4)
        assert connection.execute(text("SELECT 2")).scalar() == 2
        assert (response.read(), other.read()) == (b"11", b"12")
        with of_pool.cursor() as cursor:
            cursor.execute("SELECT 3")
        pool.putconn(of_pool)
    close_idle()
    gc.collect()  # the engine has got a new pool, and the old one was given the connection back
    assert names(own) == []
    """
    in_process(HELD + dedent(code), addresses["sqlalchemy"], addresses["psycopg2"], addresses["http"])


def test_a_transaction_of_django_is_not_lost(addresses: dict[str, str]) -> None:
    code = """
    from tests.unit.workers.forked_clients import django
    use = django(sys.argv[1])
    from django.db import transaction
    with transaction.atomic():
        assert use(1) == 1
        still_has_connections(1)
        assert use(2) == 2
    assert close_idle() == ["Django: 1"]
    """
    in_process(HELD + dedent(code), addresses["django"])


def test_a_database_in_memory_keeps_its_rows() -> None:
    code = """
    from sqlalchemy import create_engine, text
    from sqlalchemy.pool import StaticPool

    named = "sqlite:///file:rows?mode=memory&uri=true"
    engines = [create_engine(url, poolclass=StaticPool) for url in ("sqlite://", "sqlite:///:memory:", named)]
    for engine in engines:
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE kept (n INTEGER)"))
    close_idle()
    for engine in engines:
        with engine.begin() as connection:
            assert connection.execute(text("SELECT count(*) FROM kept")).scalar() == 0
    """
    in_process(HELD + dedent(code))


def test_nothing_is_imported_and_no_proxy_is_asked() -> None:
    code = """
    class Proxy:
        @property
        def __class__(self):
            raise AssertionError("asked")

    import httpcore  # so that there is something to look for
    proxy, before = Proxy(), set(sys.modules)
    assert close_idle() == []
    assert set(sys.modules) == before
    """
    in_process(HELD + dedent(code))


def test_an_error_of_one_pool_is_reported_and_the_others_are_closed(postgres: Postgres) -> None:
    code = """
    from psycopg2.pool import SimpleConnectionPool

    class Broken:
        def close(self):
            raise ZeroDivisionError("marker")

    pools = [SimpleConnectionPool(1, 2, sys.argv[1]) for _ in range(3)]
    pools[1]._pool.append(Broken())
    assert close_idle() == ["psycopg2: ZeroDivisionError: marker", "psycopg2: 2"]
    assert close_idle() == ["psycopg2: 1"]
    """
    in_process(HELD + dedent(code), postgres.dsn())
