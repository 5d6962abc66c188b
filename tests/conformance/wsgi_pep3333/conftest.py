"""The classes that call WSGI applications."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.conftest import BY_VARS, OVER_HTTP2, conforming
from tests.conftest import Pool
from tests.harness import REFERENCE, Server, each
from tests.harness.classes import THREADED, WSGI

ON_A_LOOP = () if REFERENCE else ("tornado",)
"""Also for an interface of its own. The reference server has tornado's container call WSGI, which is not PEP 3333."""


def calling_wsgi(pool: Pool, worker_class: str, transport: str, **options: Any) -> Server:
    if worker_class in ON_A_LOOP:
        options["twins"] = False
    return conforming(pool, worker_class, transport, **options)


@pytest.fixture(
    scope="session",
    params=each(
        "sync-tcp",
        "sync-unix",
        "gthread-tcp",
        "gthread-unix",
        "gevent-tcp",
        "eventlet-unix",
        *(f"{alias}-{transport}" for alias in (*WSGI, *ON_A_LOOP) for transport in OVER_HTTP2),
        *(f"{alias}-{transport}" for alias in ("gthread", "gevent") for transport in BY_VARS),
        # One class that waits in threads, and one that waits in a hub, which begin before the body is there.
        "sync-tcp-unbuffered",
        "gevent-unix-unbuffered",
        *(f"{alias}-{transport}" for alias in ON_A_LOOP for transport in ("tcp", "unix", "tcp-unbuffered")),
    ),
)
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    worker_class, transport, *unbuffered = request.param.split("-")
    if unbuffered and not REFERENCE:
        return calling_wsgi(pool, worker_class, transport, no_request_buffering=True)
    return calling_wsgi(pool, worker_class, transport)


@pytest.fixture(scope="session", params=each(*THREADED, "gevent", *ON_A_LOOP))
def tcp_server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    return calling_wsgi(pool, request.param, "tcp")


@pytest.fixture(scope="session", params=each("gthread", "gevent", *ON_A_LOOP))
def keeping_server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    return calling_wsgi(pool, request.param, "tcp")
