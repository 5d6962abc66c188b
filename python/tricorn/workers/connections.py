"""Closes connections that well-known libraries keep open, before a process is forked.

A fork shares the sockets of its parent, and two processes cannot read from the same connection. Each library below
connects again when it is used next, in the parent as in its forks. A connection that the application holds itself
stays open: the application would find it closed. The audit of the fork (`fork_audit`) names those that are left.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import Empty, Full
from typing import Any

from tricorn.record import Record
from tricorn.unpatched import os

SENTRY_TIME = 2.0
"""Seconds for the events that are in its queue."""


class Client(Record):
    """A class of a library whose instances have something open that a fork must not share."""

    library: str
    module: str
    """Module of its class. A library that is not imported has nothing to close."""
    class_name: str
    close: Callable[[Any], None]
    """Closes it for an instance, which opens it again when it is used."""


def _close_django(connection: Any) -> None:
    """Closes a connection of any thread: `connections.close_all()` sees only those of its own thread."""
    if connection.connection is None or connection.in_atomic_block:
        return
    connection.inc_thread_sharing()
    try:
        connection.close()
    finally:
        connection.dec_thread_sharing()


def _close_django_pool(connection: Any) -> None:
    """Closes the pool of `OPTIONS["pool"]`, whose threads no fork would have. The next query makes another."""
    if connection.alias in getattr(connection, "_connection_pools", ()):
        connection.close_pool()


def _close_django_cache(cache: Any) -> None:
    """Disconnects a client of memcached, which Django makes when the cache is used first."""
    client = vars(cache).get("_cache")
    if client is not None:
        client.disconnect_all()


def _dispose(engine: Any) -> None:
    """Closes idle connections of SQLAlchemy. Those that are checked out stay open.

    Of the drivers for asyncio only psycopg can close a connection whose loop has ended.
    """
    if _is_in_memory(engine):
        return
    if not getattr(engine.dialect, "is_async", False):
        engine.dispose()
    elif engine.dialect.driver.startswith("psycopg") and engine.pool.checkedin():
        modules: Mapping[str, Any] = sys.modules
        modules["asyncio"].run(modules["sqlalchemy.util"].greenlet_spawn(engine.dispose))


def _is_in_memory(engine: Any) -> bool:
    """Whether it is a database of SQLite that ends with its connection."""
    if engine.dialect.name != "sqlite":
        return False
    return ":memory:" in (engine.url.database or ":memory:") or engine.url.query.get("mode") == "memory"


def _close_psycopg2(pool: Any) -> None:
    """Takes idle connections out of the pool. It connects when `getconn` finds none."""
    while pool._pool:
        pool._pool.pop().close()


def _disconnect_redis(pool: Any) -> None:
    """Disconnects all connections. One that is held connects again with its next command, too."""
    pool.disconnect()


def _close_urllib3(pool: Any) -> None:
    """Closes the connections that wait in the pool, and puts them back: they connect again.

    They are taken out meanwhile, since threads of monitoring agents use such pools at any time.
    """
    waiting: list[Any] = []
    with suppress(Empty, AttributeError):  # `pool.pool` is None once the pool is closed
        while True:
            waiting.append(pool.pool.get_nowait())
    for connection in reversed(waiting):
        if connection is not None:
            connection.close()
        with suppress(Full):
            pool.pool.put_nowait(connection)


def _close_httpcore(pool: Any) -> None:
    """Closes idle connections, which the pool drops with its next request. `Client.close` would end the client."""
    for connection in pool.connections:
        if connection.is_idle():
            connection.close()


def _end_sentry(worker: Any) -> None:
    """Ends the thread that sends events. The next event starts another.

    A thread that waits at the queue would still be noted there in the fork, where it does not run. The first event of
    the fork would wake it instead of its successor, and stay in the queue until the second event.
    """
    if worker.is_alive:
        thread = worker._thread
        worker.kill()
        thread.join(SENTRY_TIME)


CLIENTS = (
    Client("Sentry", "sentry_sdk.worker", "BackgroundWorker", _end_sentry),
    Client("Django", "django.db.backends.base.base", "BaseDatabaseWrapper", _close_django),
    Client("Django's pool", "django.db.backends.base.base", "BaseDatabaseWrapper", _close_django_pool),
    Client("Django's cache", "django.core.cache.backends.memcached", "BaseMemcachedCache", _close_django_cache),
    Client("SQLAlchemy", "sqlalchemy.engine.base", "Engine", _dispose),
    Client("psycopg2", "psycopg2.pool", "AbstractConnectionPool", _close_psycopg2),
    Client("redis", "redis.connection", "ConnectionPool", _disconnect_redis),
    Client("valkey", "valkey.connection", "ConnectionPool", _disconnect_redis),
    Client("urllib3", "urllib3.connectionpool", "HTTPConnectionPool", _close_urllib3),
    Client("httpx", "httpcore._sync.connection_pool", "ConnectionPool", _close_httpcore),
)
"""Table in the order of closing: Sentry's connection is idle when its thread has ended, and connections of Django go
back to its pool."""


def close_idle() -> list[str]:
    """Closes them. Returns, for the log, how many files each library had open, and what could not be closed.

    No other thread may use them meanwhile. Objects that `gc.freeze` has put away are not found.
    """
    classes = {client: found for client in CLIENTS if (found := _imported(client)) is not None}
    instances = _instances(set(classes.values()))
    report: list[str] = []
    for client, its_class in classes.items():
        report += _close_all(client, instances[its_class])
    return report


def _imported(client: Client) -> type | None:
    found = getattr(sys.modules.get(client.module), client.class_name, None)
    return found if isinstance(found, type) else None


def _instances(classes: set[type]) -> Mapping[type, Sequence[object]]:
    """Finds instances of the classes.

    Asks types only, since a proxy makes its object to answer `isinstance`; and by their ids, since a metaclass may
    have made them unhashable.
    """
    found: dict[type, list[object]] = {each: [] for each in classes}
    if not found:
        return found
    wanted = {id(each): instances for each, instances in found.items()}
    known: dict[int, list[object] | None] = {}
    for each in gc.get_objects():
        kind = type(each)
        if id(kind) not in known:
            known[id(kind)] = next((wanted[id(base)] for base in kind.__mro__ if id(base) in wanted), None)
        instances = known[id(kind)]
        if instances is not None:
            instances.append(each)
    return found


def _close_all(client: Client, instances: Sequence[object]) -> Iterator[str]:
    before = _open_files()
    for each in instances:
        try:
            client.close(each)
        except Exception as error:
            yield f"{client.library}: {type(error).__name__}: {error}"
    if closed := before - _open_files():
        yield f"{client.library}: {closed}"


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:  # no /proc
        return 0
