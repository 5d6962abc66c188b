"""Table of the places where libraries wait for room in a pool, with the cure. The core, workers and arbiter read it.

A site is two functions, the second called by the first: the wait itself has no name of its own in most libraries, and
the first one alone may be making a connection. Names were read in the libraries' sources; tests wait in those that are
installed there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tricorn.record import Record


class Site(Record):
    file: str
    """The end of its path."""
    function: str
    inner_file: str = ""
    """File of the next frame further in. Empty if any will do, or if there is none (gevent's queues are in C)."""
    inner_function: str = ""


class Pool(Record):
    name: str
    title: str
    what: str
    """The limited resource."""
    sites: tuple[Site, ...]
    cure: str
    """The remedy: the parameter that sets the pool's size, then whole sentences."""
    size: Callable[[Any], str] | None = None
    """Describes the size of the pool, which is `self` of the first function. None if it cannot be read."""


CONDITIONS = "threading.py", "wait"
QUEUE = "queue.py", "get"

SOONER = "Hold each connection for less time: give it back before other work is done."


def _alchemy(pool: Any) -> str:
    size, more = pool._pool.maxsize, pool._max_overflow
    return f"{size} connections" + (f" and {more} of overflow" if more else "")


def _limits(pool: Any) -> str:
    most, of_host = pool._limit, pool._limit_per_host
    return f"{most} connections" + (f", {of_host} for a host" if of_host else "")


POOLS = (
    Pool(
        "sqlalchemy",
        "SQLAlchemy's pool",
        "connections to the database",
        (Site("sqlalchemy/pool/impl.py", "_do_get", "sqlalchemy/util/queue.py", "get"),),
        f"{SOONER} A session has one from its first query to commit(), rollback() or close(). Or raise pool_size and "
        "max_overflow of create_engine(), as far as the database takes so many from all workers together.",
        _alchemy,
    ),
    Pool(
        "psycopg",
        "psycopg_pool",
        "connections to the database",
        tuple(
            Site(f"psycopg_pool/{file}.py", outer, f"psycopg_pool/{file}.py", "wait")
            for file in ("pool", "pool_async")
            for outer in ("_getconn_unchecked", "getconn")
        ),
        f"{SOONER} Or raise max_size of the pool (of Django: OPTIONS, pool), as far as the database takes so many from "
        "all workers together.",
        lambda pool: f"{pool.max_size} connections",
    ),
    Pool(
        "asyncpg",
        "asyncpg's pool",
        "connections to the database",
        (Site("asyncpg/pool.py", "_acquire_impl", "asyncio/queues.py", "get"),),
        f"{SOONER} Or raise max_size of create_pool(), as far as the database takes so many from all workers together.",
        lambda pool: f"{pool._maxsize} connections",
    ),
    Pool(
        "django_geventpool",
        "django-db-geventpool",
        "connections to the database",
        (Site("django_db_geventpool/backends/pool.py", "get", "gevent/queue.py", "get"),),
        f"{SOONER} Or raise MAX_CONNS, as far as the database takes so many from all workers together.",
        lambda pool: f"{pool.maxsize} connections",
    ),
    Pool(
        "pymongo",
        "pymongo's pool",
        "connections to the database",
        (
            Site("pymongo/synchronous/pool.py", "_get_conn", "pymongo/lock.py", "_cond_wait"),
            Site("pymongo/asynchronous/pool.py", "_get_conn", "pymongo/lock.py", "_async_cond_wait"),
        ),
        f"{SOONER} A cursor may have one until it is read to its end. Or raise maxPoolSize.",
        lambda pool: f"{pool.opts.max_pool_size} connections",
    ),
    Pool(
        "redis",
        "redis' BlockingConnectionPool",
        "connections to redis",
        (
            Site("redis/connection.py", "get_connection", *QUEUE),
            Site("redis/asyncio/connection.py", "get_connection", "asyncio/locks.py", "wait_for"),
        ),
        f"{SOONER} A subscription and a transaction have one for all of their time. Or raise max_connections.",
        lambda pool: f"{pool.max_connections} connections",
    ),
    Pool(
        "urllib3",
        "urllib3's pool (of requests, boto3 and others)",
        "connections to the host",
        (Site("urllib3/connectionpool.py", "_get_conn", *QUEUE),),
        "Read each answer to its end, or close it: it has the connection until then. Or raise maxsize "
        "(of requests: HTTPAdapter(pool_maxsize=…); of boto3: Config(max_pool_connections=…)).",
        lambda pool: f"{pool.pool.maxsize} connections",
    ),
    Pool(
        "httpx",
        "httpcore's pool (of httpx)",
        "connections",
        (
            Site(
                "httpcore/_async/connection_pool.py",
                "handle_async_request",
                "httpcore/_async/connection_pool.py",
                "wait_for_connection",
            ),
            Site(
                "httpcore/_sync/connection_pool.py",
                "handle_request",
                "httpcore/_sync/connection_pool.py",
                "wait_for_connection",
            ),
        ),
        "Read each answer to its end, or close it: it has the connection until then. Or raise "
        "httpx.Limits(max_connections=…) of the client.",
        lambda pool: f"{pool._max_connections} connections",
    ),
    Pool(
        "aiohttp",
        "the connector of aiohttp's client",
        "connections",
        (Site("aiohttp/connector.py", "_wait_for_available_connection"),),
        "Read each answer to its end, or release it: it has the connection until then. Or raise limit or "
        "limit_per_host of TCPConnector.",
        _limits,
    ),
    Pool(
        "anyio",
        "anyio's limiter of threads (of starlette's and FastAPI's functions without async)",
        "threads",
        (Site("anyio/_backends/_asyncio.py", "acquire_on_behalf_of"),),
        "Each function without async has a thread while it runs, whatever it waits for there: make those that wait for "
        "long coroutines. Or raise anyio.to_thread.current_default_thread_limiter().total_tokens when the application "
        "starts.",
        lambda pool: f"{pool._total_tokens} threads",
    ),
    Pool(
        "executor",
        "the default executor of asyncio (of asyncio.to_thread)",
        "threads",
        (Site("asyncio/threads.py", "to_thread"),),
        "Each call has a thread while it runs, whatever it waits for there: await what can be awaited. Or give the "
        "loop a larger one: loop.set_default_executor(ThreadPoolExecutor(…)).",
    ),
    Pool(
        "asgiref",
        "asgiref's one thread (of sync_to_async, and of Channels' consumers without async)",
        "threads",
        (Site("asgiref/sync.py", "__call__"),),
        "All calls by sync_to_async share it, unless Django's own handler has made the request's context: in Channels' "
        "consumers, and where another framework calls Django. Pass thread_sensitive=False where a function may run in "
        "any thread, await what can be awaited, or have Django answer these requests under -k gthread.",
    ),
    Pool(
        "gevent",
        "the thread pool of gevent's hub",
        "threads",
        (Site("gevent/threadpool.py", "spawn"),),
        "Names of hosts are looked up there, too. Give calls that take long threads of their own (tricorn.offload), or "
        "raise gevent.get_hub().threadpool.maxsize when the application starts.",
        lambda pool: f"{pool.maxsize} threads",
    ),
)

BY_NAME = {pool.name: pool for pool in POOLS}


def sites() -> list[tuple[str, str, str, str, str]]:
    """Returns the core's table: pool, file and function, and those of the next frame further in.

    What only Python can tell full from free (an executor, whose calls wait at the same place whether they run or not)
    is not among them.
    """
    return [
        (pool.name, site.file, site.function, site.inner_file, site.inner_function)
        for pool in POOLS
        if pool.name not in ASKED
        for site in pool.sites
    ]


ASKED = ("executor", "asgiref")
