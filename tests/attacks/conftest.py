"""A server with short deadlines, and the question every attack ends with: does it still serve, and only serve?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import Pool
from tests.harness import Server, each
from tests.harness.classes import EVENT_LOOPS, SERVERS_OF_CLASSES, THREADED

HEADER_SECONDS = 1
BODY_SECONDS = 1
WRITE_SECONDS = 1
SMALLEST_RATE = 100


def guarded(pool: Pool, worker_class: str, **more: Any) -> Server:
    return pool.get(
        worker_class=worker_class,
        header_timeout=HEADER_SECONDS,
        body_timeout=BODY_SECONDS,
        body_min_rate=SMALLEST_RATE,
        write_timeout=WRITE_SECONDS,
        **{"keep_alive": 30, **more},
    )


@pytest.fixture(scope="session", params=each(*THREADED, "gevent", *EVENT_LOOPS, *SERVERS_OF_CLASSES))
def any_server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    return guarded(pool, request.param)


@contextmanager
def unharmed(server: Server) -> Iterator[Server]:
    """The attack may not reach the application, kill the worker, or stop it from serving."""
    worker = server.worker_pids()
    yield server
    assert server.get("/hello").body == b"Hello\n"
    assert server.worker_pids() == worker, server.log.text[-3000:]


@pytest.fixture
def server(any_server: Server) -> Iterator[Server]:
    with unharmed(any_server):
        yield any_server
