"""Table of the places where libraries wait for a pool, with the remedy. The core, workers and arbiter read it.

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
    """The limited resource, as in "waiting for a database connection"."""
    sites: tuple[Site, ...]
    cure: str
    """The remedy: the parameter that sets the pool's size, then whole sentences."""
    size: Callable[[Any], str] | None = None
    """Describes the size of the pool, which is `self` of the first function. None if it cannot be read."""


CONDITIONS = "threading.py", "wait"
QUEUE = "queue.py", "get"

SOONER = "Hold each connection for a shorter time: return it before doing other work."
TOGETHER = "The database must allow that many for all workers together."


def _alchemy(pool: Any) -> str:
    size, more = pool._pool.maxsize, pool._max_overflow
    return f"{size} connections" + (f" and {more} overflow" if more else "")


def _limits(pool: Any) -> str:
    most, of_host = pool._limit, pool._limit_per_host
    return f"{most} connections" + (f", {of_host} per host" if of_host else "")


POOLS = (
    Pool(
        "sqlalchemy",
        "SQLAlchemy's pool",
        "a database connection",
        (Site("sqlalchemy/pool/impl.py", "_do_get", "sqlalchemy/util/queue.py", "get"),),
        f"{SOONER} A session holds one from its first query to commit(), rollback() or close(). Or raise pool_size "
        f"and max_overflow of create_engine(). {TOGETHER}",
        _alchemy,
    ),
    Pool(
        "psycopg",
        "psycopg_pool",
        "a database connection",
        tuple(
            Site(f"psycopg_pool/{file}.py", outer, f"psycopg_pool/{file}.py", "wait")
            for file in ("pool", "pool_async")
            for outer in ("_getconn_unchecked", "getconn")
        ),
        f"{SOONER} Or raise max_size of the pool (in Django: OPTIONS, pool). {TOGETHER}",
        lambda pool: f"{pool.max_size} connections",
    ),
    Pool(
        "asyncpg",
        "asyncpg's pool",
        "a database connection",
        (Site("asyncpg/pool.py", "_acquire_impl", "asyncio/queues.py", "get"),),
        f"{SOONER} Or raise max_size of create_pool(). {TOGETHER}",
        lambda pool: f"{pool._maxsize} connections",
    ),
    Pool(
        "django_geventpool",
        "django-db-geventpool",
        "a database connection",
        (Site("django_db_geventpool/backends/pool.py", "get", "gevent/queue.py", "get"),),
        f"{SOONER} Or raise MAX_CONNS. {TOGETHER}",
        lambda pool: f"{pool.maxsize} connections",
    ),
    Pool(
        "pymongo",
        "pymongo's pool",
        "a database connection",
        (
            Site("pymongo/synchronous/pool.py", "_get_conn", "pymongo/lock.py", "_cond_wait"),
            Site("pymongo/asynchronous/pool.py", "_get_conn", "pymongo/lock.py", "_async_cond_wait"),
        ),
        f"{SOONER} A cursor may hold one until it is read to the end. Or raise maxPoolSize.",
        lambda pool: f"{pool.opts.max_pool_size} connections",
    ),
    Pool(
        "redis",
        "redis' BlockingConnectionPool",
        "a Redis connection",
        (
            Site("redis/connection.py", "get_connection", *QUEUE),
            Site("redis/asyncio/connection.py", "get_connection", "asyncio/locks.py", "wait_for"),
        ),
        f"{SOONER} Subscriptions and transactions hold one until they end. Or raise max_connections.",
        lambda pool: f"{pool.max_connections} connections",
    ),
    Pool(
        "urllib3",
        "urllib3's pool (used by requests, boto3 and others)",
        "a connection to the host",
        (Site("urllib3/connectionpool.py", "_get_conn", *QUEUE),),
        "Read each response to the end, or close it: it holds the connection until then. Or raise maxsize "
        "(requests: HTTPAdapter(pool_maxsize=…); boto3: Config(max_pool_connections=…)).",
        lambda pool: f"{pool.pool.maxsize} connections",
    ),
    Pool(
        "httpx",
        "httpcore's pool (used by httpx)",
        "a connection",
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
        "Read each response to the end, or close it: it holds the connection until then. Or raise "
        "httpx.Limits(max_connections=…) of the client.",
        lambda pool: f"{pool._max_connections} connections",
    ),
    Pool(
        "aiohttp",
        "the connector of aiohttp's client",
        "a connection",
        (Site("aiohttp/connector.py", "_wait_for_available_connection"),),
        "Read each response to the end, or release it: it holds the connection until then. Or raise limit or "
        "limit_per_host of TCPConnector.",
        _limits,
    ),
    Pool(
        "anyio",
        "anyio's thread limiter (used for functions without async by Starlette and FastAPI)",
        "a thread",
        (Site("anyio/_backends/_asyncio.py", "acquire_on_behalf_of"),),
        "Each function without async occupies a thread while it runs: turn those that wait for long into coroutines. "
        "Or raise anyio.to_thread.current_default_thread_limiter().total_tokens when the application starts.",
        lambda pool: f"{pool._total_tokens} threads",
    ),
    Pool(
        "executor",
        "asyncio's default executor (used by asyncio.to_thread)",
        "a thread",
        (Site("asyncio/threads.py", "to_thread"),),
        "Each call occupies a thread while it runs: await what can be awaited. Or give the loop a larger executor: "
        "loop.set_default_executor(ThreadPoolExecutor(…)).",
    ),
    Pool(
        "asgiref",
        "asgiref's single thread (used by sync_to_async and by Channels consumers without async)",
        "a thread",
        (Site("asgiref/sync.py", "__call__"),),
        "All calls through sync_to_async share it outside of Django's own request handler, for example in Channels "
        "consumers. Pass thread_sensitive=False if a function may run in any thread, await what can be awaited, or "
        "serve these requests with Django under -k gthread.",
    ),
    Pool(
        "gevent",
        "the thread pool of gevent's hub",
        "a thread",
        (Site("gevent/threadpool.py", "spawn"),),
        "Host names are resolved there, too. Run slow calls in other threads (tricorn.offload), or raise "
        "gevent.get_hub().threadpool.maxsize when the application starts.",
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
