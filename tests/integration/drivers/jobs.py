"""What is done with each driver while a sibling is watched; run by tests.harness.sibling in a child."""

from __future__ import annotations

import importlib
import io
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.harness.sibling import Watch

WAIT = 0.4
"""Seconds that a driver has to wait for, by whatever means it has."""


# PostgreSQL


def held(watch: Watch) -> int:
    """The connections that the worker's page tells of, without those that were closed."""
    watch.connections.sweep()
    return watch.connections._page.databases


def psycopg2_waits(watch: Watch, dsn: str, silent: str) -> None:
    import psycopg2

    with watch("connect", psycopg2.OperationalError):
        psycopg2.connect(silent)
    connection = psycopg2.connect(dsn)
    with watch("query"):
        connection.cursor().execute(f"SELECT pg_sleep({WAIT})")
    connection.commit()


def psycopg2_killed(watch: Watch, dsn: str) -> None:
    import psycopg2

    connection = psycopg2.connect(dsn, application_name="killed")
    timeout = watch.timeout(0.1)
    try:
        connection.cursor().execute("SELECT pg_sleep(3600)")
    except BaseException as error:
        watch.notes["is the timeout"] = error is timeout
    watch.notes["closed"] = connection.closed


class Slow(io.StringIO):
    """A file that lets others go on while it is read: a body that comes over the network."""

    def read(self, *size: Any) -> str:
        time.sleep(0.02)
        return super().read(*size)


def psycopg2_copies(watch: Watch, dsn: str, with_own: bool) -> None:
    """What psycopg2 has no green mode for; queries wait cooperatively before, beside and afterwards."""
    import psycopg2
    import psycopg2.extras

    class Own(psycopg2.extensions.cursor):
        pass

    connection, other = psycopg2.connect(dsn), psycopg2.connect(dsn)
    for factory in (None, *[Own] * with_own, psycopg2.extras.DictCursor, psycopg2.extras.NamedTupleCursor):
        name = factory.__name__ if factory else "cursor"
        cursor = connection.cursor(cursor_factory=factory)
        cursor.execute("CREATE TEMPORARY TABLE numbers (a int, b text)")
        greenlet = watch.spawn(other.cursor().execute, "SELECT pg_sleep(0.05)")
        cursor.copy_from(Slow("".join(f"{number}\tone\n" for number in range(50_000))), "numbers")
        watch.wait(greenlet)
        out, expert = io.StringIO(), io.StringIO()
        cursor.copy_to(out, "numbers")
        cursor.copy_expert("COPY (SELECT count(*) FROM numbers) TO STDOUT", expert)
        watch.notes[name] = [out.getvalue().count("\n"), expert.getvalue().strip()]
        connection.rollback()
    large = connection.lobject(0, "wb")
    large.write(b"hello " * 100_000)
    large.close()
    large = connection.lobject(large.oid, "rb")
    large.seek(6 * 99_999)
    watch.notes["large object"] = [large.tell(), large.read().decode()]
    large.unlink()
    connection.rollback()
    with watch("query"):
        connection.cursor().execute(f"SELECT pg_sleep({WAIT})")
    connection.rollback()
    try:
        connection.cursor().copy_expert("COPY nowhere TO STDOUT", io.StringIO())
    except psycopg2.ProgrammingError as error:
        watch.notes["another error"] = str(error)
    connection.rollback()
    with watch("query after an error"):
        connection.cursor().execute(f"SELECT pg_sleep({WAIT})")
    with watch("copy"):
        connection.cursor().copy_expert(f"COPY (SELECT pg_sleep({WAIT})) TO STDOUT", io.StringIO())


def psycopg2_shared(watch: Watch, dsn: str) -> None:
    """One connection for two greenlets at a time, and what the error says to do instead."""
    import psycopg2

    connection = psycopg2.connect(dsn)
    connection.autocommit = True

    def query() -> None:
        connection.cursor().execute("SELECT pg_sleep(0.1)")

    greenlet = watch.spawn(query)
    time.sleep(0.05)
    try:
        query()
    except psycopg2.ProgrammingError as error:
        watch.notes["error"] = str(error)
    watch.wait(greenlet)
    lock = threading.Lock()

    def in_turn() -> None:
        with lock:
            query()

    for greenlet in [watch.spawn(in_turn) for _ in range(3)]:
        watch.wait(greenlet)
    watch.notes["in turn"] = True


def psycopg2_with_psycogreen(watch: Watch, dsn: str) -> None:
    """The application does by itself what is already done."""
    patch = importlib.import_module(f"psycogreen.{watch.hub}").patch_psycopg
    patch()
    import psycopg2

    connection = psycopg2.connect(dsn)
    with watch("query"):
        connection.cursor().execute(f"SELECT pg_sleep({WAIT})")
    watch.notes["held"] = held(watch)


def psycopg2_with_a_foreign_callback(watch: Watch, dsn: str) -> None:
    """The application sets a callback that the server does not know: it is the one in force."""
    import psycopg2
    import psycopg2.extras

    calls = []

    def foreign(connection: Any) -> None:
        calls.append(1)
        psycopg2.extras.wait_select(connection)

    psycopg2.extensions.set_wait_callback(foreign)
    connection = psycopg2.connect(dsn)
    with watch("query"):
        connection.cursor().execute(f"SELECT pg_sleep({WAIT})")
    watch.notes["called"] = bool(calls)
    watch.notes["held"] = held(watch)


def psycopg2_refused(watch: Watch, dsn: str, usable: int, more: int) -> None:
    import psycopg2

    _refused(watch, psycopg2.connect, psycopg2.OperationalError, dsn, usable, more)


def psycopg_refused(watch: Watch, dsn: str, usable: int, more: int) -> None:
    import psycopg

    _refused(watch, psycopg.connect, psycopg.OperationalError, dsn, usable, more)


def _refused(watch: Watch, connect: Any, error: type[Exception], dsn: str, usable: int, more: int) -> None:
    """All that are `usable` one by one (PostgreSQL refuses both of two that ask at once for the last), then `more`."""
    connections = [connect(dsn) for _ in range(usable)]

    def one() -> None:
        try:
            connections.append(connect(dsn))
        except error:
            watch.notes["errors"] = watch.notes.get("errors", 0) + 1

    for greenlet in [watch.spawn(one) for _ in range(more)]:
        watch.wait(greenlet)
    watch.notes["held"] = held(watch)
    watch.notes["page"] = watch.connections._page.databases
    connections.pop().close()
    kept = connections.pop()
    kept.close()
    watch.notes["held after two were closed"] = held(watch)
    connections.clear()
    watch.notes["page at the end"] = watch.connections._page.databases


def psycopg_killed(watch: Watch, dsn: str) -> None:
    import psycopg

    connection = psycopg.connect(dsn)
    timeout = watch.timeout(0.1)
    try:
        connection.execute("SELECT pg_sleep(3600)")
    except BaseException as error:
        watch.notes["is the timeout"] = error is timeout
    connection.rollback()
    watch.notes["usable"] = connection.execute("SELECT 1").fetchone() == (1,)
    connection.commit()
    greenlet = watch.spawn(connection.execute, "SELECT pg_sleep(3600)")
    time.sleep(0.1)
    greenlet.kill()
    connection.rollback()
    watch.notes["usable after a kill"] = connection.execute("SELECT 1").fetchone() == (1,)


def psycopg_waits(watch: Watch, dsn: str, silent: str) -> None:
    import psycopg

    with watch("connect", psycopg.OperationalError):
        psycopg.connect(silent)
    connection = psycopg.connect(dsn)
    with watch("query"):
        connection.execute(f"SELECT pg_sleep({WAIT})")
    with watch("copy"), connection.cursor().copy(f"COPY (SELECT pg_sleep({WAIT})) TO STDOUT") as copy:
        watch.notes["copied"] = sum(1 for _ in copy)


# Others


def grpc_waits(watch: Watch, port: int) -> None:
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/slow/Wait")
        call(b"0", timeout=30)
        with watch("call"):
            watch.notes["answer"] = call(str(WAIT).encode(), timeout=30).decode()


def kafka_waits(watch: Watch, _: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"test.mock.num.brokers": 1, "test.mock.broker.rtt": int(WAIT * 1000), "linger.ms": 0})
    producer.produce("topic", b"value")
    with watch("wait"):
        watch.notes["left"] = producer.flush(30)


def pycurl_waits(watch: Watch, port: int) -> None:
    import pycurl

    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, f"http://127.0.0.1:{port}/")
    with watch("wait", pycurl.error):
        curl.perform()


def sqlite3_waits(watch: Watch, path: str) -> None:
    import sqlite3

    watch.notes["before connect"] = len(watch.outcome.lines())
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("BEGIN EXCLUSIVE")
    other = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
    with watch("wait", sqlite3.OperationalError):
        other.execute("BEGIN EXCLUSIVE")


def pymssql_waits(watch: Watch, port: int) -> None:
    import pymssql

    with watch("wait", Exception):
        pymssql.connect("127.0.0.1", "user", "password", "base", port=str(port))


def pymysql_waits(watch: Watch, port: int) -> None:
    import pymysql

    with watch("wait", pymysql.MySQLError):
        pymysql.connect(host="127.0.0.1", port=port)


def oracledb_waits(watch: Watch, port: int) -> None:
    import oracledb

    watch.notes["thin"] = oracledb.is_thin_mode()
    with watch("wait", oracledb.Error):
        oracledb.connect(user="scott", password="tiger", dsn=f"127.0.0.1:{port}/service")


def oracledb_goes_thick(watch: Watch) -> None:
    import oracledb

    watch.notes["before"] = watch.outcome.lines()
    try:
        oracledb.init_oracle_client()
    except oracledb.Error as error:
        watch.notes["error"] = str(error)
    watch.notes["after"] = watch.outcome.lines()


def redis_waits(watch: Watch, port: int) -> None:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    client = redis.Redis(port=port, retry=Retry(NoBackoff(), 0))
    with watch("wait", redis.RedisError):
        client.get("key")


def requests_waits(watch: Watch, port: int) -> None:
    import requests

    with watch("wait", requests.RequestException):
        requests.get(f"http://127.0.0.1:{port}/", timeout=30)


def urllib3_waits(watch: Watch, port: int) -> None:
    import urllib3

    with watch("wait", urllib3.exceptions.HTTPError):
        urllib3.PoolManager().request("GET", f"http://127.0.0.1:{port}/", retries=False)


def httpx_waits(watch: Watch, port: int) -> None:
    import httpx

    # It reads a hundred certificates, which no hub can interrupt.
    with httpx.Client(timeout=30) as client, watch("wait", httpx.HTTPError):
        client.get(f"http://127.0.0.1:{port}/")


def pymongo_waits(watch: Watch, port: int) -> None:
    import pymongo
    import pymongo.errors

    client: Any = pymongo.MongoClient("127.0.0.1", port, serverSelectionTimeoutMS=int(WAIT * 1000))
    with watch("wait", pymongo.errors.PyMongoError):
        client.admin.command("ping")


def ldap3_waits(watch: Watch, port: int) -> None:
    import ldap3

    with watch("wait", Exception):
        ldap3.Connection(ldap3.Server("127.0.0.1", port=port), receive_timeout=30).bind()


def several(watch: Watch, port: int, jobs: dict[str, str]) -> None:
    """Many drivers in one process, which takes longer to start than they take: `jobs` are functions by title."""
    for title, job in jobs.items():
        watch.prefix = f"{title} "
        try:
            globals()[job](watch, port)
        except Exception as error:
            watch.notes[title] = f"{type(error).__name__}: {error}"


def imported(watch: Watch, *names: str) -> None:
    """Imports, and imports again."""
    for name in names * 2:
        sys.modules.pop(name, None)
        importlib.import_module(name)
    time.sleep(0)
