"""The classes that call WSGI applications."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import conforming
from tests.conftest import Pool
from tests.harness import Server, each
from tests.harness.classes import THREADED


@pytest.fixture(
    scope="session",
    params=each("sync-tcp", "sync-unix", "gthread-tcp", "gthread-unix", "gevent-tcp", "eventlet-unix"),
)
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    worker_class, _, transport = request.param.partition("-")
    return conforming(pool, worker_class, transport)


@pytest.fixture(scope="session", params=each(*THREADED, "gevent"))
def tcp_server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    return conforming(pool, request.param, "tcp")


@pytest.fixture(scope="session", params=each("gthread", "gevent"))
def keeping_server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    return conforming(pool, request.param, "tcp")
