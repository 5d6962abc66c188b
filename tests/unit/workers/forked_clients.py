"""Clients of well-known libraries that a process uses, and goes on to use in its forks.

`python -m tests.unit.workers.forked_clients NAME ADDRESS` is a process of its own: what it closes are not the tests'
connections.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from tricorn.workers.connections import close_idle
from tricorn.workers.fork_audit import REFORK, Audit, open_files

Use = Callable[[int], int]
"""Asks the server for this number."""

ROUNDS = 20
SELECT = "SELECT {:d}"


def django(address: str, **options: Any) -> Use:
    from django.conf import settings

    words = dict(word.split("=", 1) for word in address.split())
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": words["dbname"], "USER": words["user"]}
    database |= {"HOST": words["host"], "PORT": words["port"], "OPTIONS": options}
    settings.configure(DATABASES={"default": database})
    from django.db import connection

    def use(number: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s::int", [number])
            return int(cursor.fetchone()[0])

    return use


def django_in_another_thread(address: str) -> Use:
    """The connection of a worker's thread that has ended, before the garbage collector sees it."""
    use = django(address)
    gc.disable()

    def in_thread(number: int) -> int:
        answers: list[int] = []
        thread = threading.Thread(target=lambda: answers.append(use(number)))
        thread.start()
        thread.join()
        return answers[0]

    return in_thread


def django_pool(address: str) -> Use:
    return django(address, pool={"min_size": 2, "max_size": 4})


def sqlalchemy(address: str) -> Use:
    from sqlalchemy import create_engine, text

    engine = create_engine(address.replace("postgresql://", "postgresql+psycopg://"))

    def use(number: int) -> int:
        with engine.connect() as connection:
            return int(connection.execute(text(SELECT.format(number))).scalar_one())

    return use


def async_sqlalchemy(address: str) -> Use:
    import asyncio

    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(address.replace("postgresql://", "postgresql+psycopg://"))

    async def ask(number: int) -> int:
        async with engine.connect() as connection:
            return int((await connection.execute(text(SELECT.format(number)))).scalar_one())

    return lambda number: asyncio.run(ask(number))


def psycopg2(address: str) -> Use:
    from psycopg2.pool import ThreadedConnectionPool

    pool = ThreadedConnectionPool(2, 3, address)

    def use(number: int) -> int:
        connection = pool.getconn()
        try:
            with connection.cursor() as cursor:
                cursor.execute(SELECT.format(number))
                return int(cursor.fetchone()[0])
        finally:
            pool.putconn(connection)

    return use


def redis(address: str, library: str = "redis", **options: Any) -> Use:
    from importlib import import_module

    client = import_module(library).Redis(port=int(address), protocol=2, **options)

    def use(number: int) -> int:
        client.set(f"{library}-{number}", number)
        return int(client.get(f"{library}-{number}"))

    return use


def valkey(address: str) -> Use:
    return redis(address, "valkey")


def redis_of_one_connection(address: str) -> Use:
    """A connection that the application holds, and that connects again."""
    return redis(address, single_connection_client=True)


def redis_blocking(address: str) -> Use:
    from redis import BlockingConnectionPool

    return redis(address, connection_pool=BlockingConnectionPool(port=int(address), protocol=2, max_connections=2))


def memcached(address: str) -> Use:
    from django.conf import settings

    cache = {"BACKEND": "django.core.cache.backends.memcached.PyMemcacheCache", "LOCATION": f"127.0.0.1:{address}"}
    settings.configure(CACHES={"default": cache})
    from django.core.cache import cache as client

    def use(number: int) -> int:
        client.set(f"n{number}", number)
        return int(client.get(f"n{number}"))

    return use


def httpx(address: str) -> Use:
    from httpx import Client

    client = Client()
    return lambda number: int(client.get(f"{address}/{number}").text)


def requests(address: str) -> Use:
    from requests import Session

    session = Session()
    return lambda number: int(session.get(f"{address}/{number}").text)


def urllib3(address: str) -> Use:
    from urllib3 import PoolManager

    manager = PoolManager()
    return lambda number: int(manager.request("GET", f"{address}/{number}").data)


CLIENTS: tuple[Callable[[str], Use], ...] = (
    django,
    django_in_another_thread,
    django_pool,
    sqlalchemy,
    async_sqlalchemy,
    psycopg2,
    redis,
    redis_of_one_connection,
    redis_blocking,
    valkey,
    memcached,
    httpx,
    requests,
    urllib3,
)


def main(name: str, address: str) -> None:
    """Uses the client, closes its connections, forks, and uses it on both sides at the same time."""
    own = list(open_files())
    use = next(each for each in CLIENTS if each.__name__ == name)(address)
    assert use(1) == 1
    before = names(own)
    report = close_idle()
    after = names(own)
    assert not after, (report, after)
    pid = os.fork()
    first = 100 if pid else 200
    try:
        answers = [use(first + number) for number in range(ROUNDS)]
        assert answers == [first + number for number in range(ROUNDS)], answers
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    print(json.dumps({"before": before, "report": report}), flush=True)
    os._exit(0)  # from Python 3.13 on a pool of psycopg that is still open holds the end of an interpreter


def names(own: list[int]) -> list[str]:
    return [name for name, _ in Audit(REFORK, own).findings()]


if __name__ == "__main__":
    main(*sys.argv[1:])
