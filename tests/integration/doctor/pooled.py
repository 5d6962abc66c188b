"""An application whose requests wait for room in pools of one, which the first of them holds until all are let go.

`GET /release` lets them go, and `GET /close` shuts the gate again. It is imported by the workers under test.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from typing import Any

PORT = int(os.environ.get("POOLED_PORT", "0"))
"""Of a server that answers with a head, and keeps the body back."""
DSN = os.environ.get("POOLED_DSN", "")
OPEN = threading.Event()
LIMIT = 60


class Gate:
    """For coroutines; made where their loop runs."""

    event: asyncio.Event | None = None

    @classmethod
    def of_loop(cls) -> asyncio.Event:
        if cls.event is None:
            cls.event = asyncio.Event()
        return cls.event


@cache
def alchemy() -> Any:
    from sqlalchemy.pool import QueuePool

    make = lambda: sqlite3.connect(":memory:", check_same_thread=False)  # noqa: E731
    return QueuePool(make, pool_size=1, max_overflow=0, timeout=LIMIT)


def sqlalchemy() -> None:
    with contextlib.closing(alchemy().connect()):
        OPEN.wait(LIMIT)


@cache
def psycopg_pool() -> Any:
    from psycopg_pool import ConnectionPool

    return ConnectionPool(DSN, min_size=1, max_size=1, timeout=LIMIT, open=True)


def psycopg() -> None:
    with psycopg_pool().connection():
        OPEN.wait(LIMIT)


@cache
def host() -> Any:
    from urllib3 import HTTPConnectionPool

    return HTTPConnectionPool("127.0.0.1", PORT, maxsize=1, block=True)


def urllib3() -> None:
    reply = host().urlopen("GET", "/", preload_content=False)
    OPEN.wait(LIMIT)
    reply.close()
    reply.release_conn()


@cache
def client() -> Any:
    import httpx

    return httpx.Client(limits=httpx.Limits(max_connections=1), timeout=LIMIT)


def httpx() -> None:
    with client().stream("GET", f"http://127.0.0.1:{PORT}/"):
        OPEN.wait(LIMIT)


@cache
def redis_pool() -> Any:
    from redis.connection import BlockingConnectionPool, Connection

    options = {"host": "127.0.0.1", "port": PORT, "protocol": 2, "lib_name": None, "lib_version": None}
    return BlockingConnectionPool(1, LIMIT, connection_class=Connection, **options)


def redis() -> None:
    connection = redis_pool().get_connection()
    OPEN.wait(LIMIT)
    redis_pool().release(connection)


def gevent() -> None:
    from gevent import get_hub
    from gevent.monkey import get_original

    pool = get_hub().threadpool
    if pool.maxsize != 1:
        pool.maxsize = 1
    sleep = get_original("time", "sleep")

    def held() -> None:
        while not OPEN.is_set():
            sleep(0.01)

    pool.apply(held)


async def async_sqlalchemy() -> None:
    async with async_engine().connect():
        await Gate.of_loop().wait()


@cache
def async_engine() -> Any:
    from sqlalchemy.ext.asyncio import create_async_engine

    dsn = DSN.replace("postgresql://", "postgresql+psycopg://")
    return create_async_engine(dsn, pool_size=1, max_overflow=0, pool_timeout=LIMIT)


@cache
def async_psycopg_pool() -> Any:
    from psycopg_pool import AsyncConnectionPool

    return AsyncConnectionPool(DSN, min_size=1, max_size=1, timeout=LIMIT, open=False)


async def async_psycopg() -> None:
    await async_psycopg_pool().open()
    async with async_psycopg_pool().connection():
        await Gate.of_loop().wait()


@cache
def async_client() -> Any:
    import httpx

    return httpx.AsyncClient(limits=httpx.Limits(max_connections=1), timeout=LIMIT)


async def async_httpx() -> None:
    async with async_client().stream("GET", f"http://127.0.0.1:{PORT}/"):
        await Gate.of_loop().wait()


SESSIONS: list[Any] = []


async def aiohttp() -> None:
    from aiohttp import ClientSession, TCPConnector

    if not SESSIONS:
        SESSIONS.append(ClientSession(connector=TCPConnector(limit=1)))
    async with SESSIONS[0].get(f"http://127.0.0.1:{PORT}/"):
        await Gate.of_loop().wait()


async def async_redis() -> None:
    connection = await async_redis_pool().get_connection()
    await Gate.of_loop().wait()
    await async_redis_pool().release(connection)


@cache
def async_redis_pool() -> Any:
    from redis.asyncio.connection import BlockingConnectionPool, Connection

    options = {"host": "127.0.0.1", "port": PORT, "protocol": 2, "lib_name": None, "lib_version": None}
    return BlockingConnectionPool(1, LIMIT, connection_class=Connection, **options)


async def anyio() -> None:
    from anyio import to_thread

    to_thread.current_default_thread_limiter().total_tokens = 1
    await to_thread.run_sync(OPEN.wait, LIMIT)


async def executor() -> None:
    from concurrent.futures import ThreadPoolExecutor

    if not EXECUTORS:
        EXECUTORS.append(ThreadPoolExecutor(1))
        asyncio.get_running_loop().set_default_executor(EXECUTORS[0])
    await asyncio.to_thread(OPEN.wait, LIMIT)


async def asgiref() -> None:
    from asgiref.sync import sync_to_async

    await sync_to_async(OPEN.wait)(LIMIT)


EXECUTORS: list[Any] = []


def gate(path: str, *, asynchronous: bool = False) -> bool:
    """Whether this path opened or shut the gate."""
    if path == "/release":
        OPEN.set()
        if asynchronous:
            Gate.of_loop().set()
    elif path == "/close":
        OPEN.clear()
        if Gate.event is not None:
            Gate.event.clear()
    return path in ("/release", "/close", "/")


def wsgi(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    if not gate(environ["PATH_INFO"]):
        globals()[environ["PATH_INFO"][1:]]()
    start_response("204 No Content", [])
    return []


async def answer(path: str) -> None:
    if not gate(path, asynchronous=True):
        await globals()[path[1:]]()


async def asgi(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    if scope["type"] == "http":
        await answer(scope["path"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def tornado() -> Any:
    from tornado.web import Application, RequestHandler

    class Handler(RequestHandler):
        async def get(self) -> None:
            await answer(self.request.path)
            self.set_status(204)

    return Application([(".*", Handler)])


def aiohttp_application() -> Any:
    from aiohttp import web

    async def handle(request: Any) -> Any:
        await answer(request.path)
        return web.Response(status=204)

    application = web.Application()
    application.router.add_get("/{path:.*}", handle)
    return application
