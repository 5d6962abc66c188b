"""The same suite for every way to wait and every transport."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Pool
from tests.harness import Server, each
from tests.harness.classes import EVENT_LOOPS, SERVERS_OF_CLASSES, THREADED

BODY_BUFFER = 64 * 1024


def conforming(pool: Pool, worker_class: str, transport: str, **more: Any) -> Server:
    return pool.get(
        worker_class=worker_class,
        transport=transport,
        keep_alive=5,
        body_buffer_size=BODY_BUFFER,
        env={"SCRIPT_NAME": ""},
        **more,
    )


@pytest.fixture(
    scope="session",
    params=each(
        "sync-tcp",
        "sync-unix",
        "gthread-tcp",
        "gthread-unix",
        "gevent-tcp",
        "asgi-tcp",
        "asgi-unix",
        "tornado-tcp",
        "aiohttp-tcp",
    ),
)
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    worker_class, _, transport = request.param.partition("-")
    return conforming(pool, worker_class, transport)


@pytest.fixture(scope="session", params=each(*THREADED, "gevent", *EVENT_LOOPS, *SERVERS_OF_CLASSES))
def tcp_server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    return conforming(pool, request.param, "tcp")


@pytest.fixture(scope="session", params=each("gthread", "gevent", *EVENT_LOOPS, *SERVERS_OF_CLASSES))
def keeping_server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    """A server that keeps connections open between requests."""
    return conforming(pool, request.param, "tcp")


@pytest.fixture(params=["1.0", "1.1"], ids=["http10", "http11"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)
