"""The same suite for every way to wait and every transport."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.conftest import Pool
from tests.harness import Server, each
from tests.harness.classes import EVENT_LOOPS, GREEN, SERVERS_OF_CLASSES, THREADED
from tests.harness.front_end_client import FrontEndClient
from tests.harness.http2_client import Http2Client
from tests.harness.tls import client

BODY_BUFFER = 64 * 1024


HTTP2 = {"http_protocols": "h2,h1", "http2_cleartext": "prior-knowledge"}
OVER_HTTP2 = ("h2", "h2tls")
"""Transports: HTTP/2 in the clear, and over TLS."""
BY_VARS = ("uwsgi", "fastcgi")
"""Transports: a front end's, which says requests as vars."""


def by_vars(pool: Pool, transport: str, serving: Callable[..., Server]) -> Server:
    """The server that `serving` starts with this protocol, as clients of a front end see it."""
    server = serving(protocol=transport)
    server.wire_type, server.wire_options = FrontEndClient, {"protocol": transport}
    return server


def over_http2(pool: Pool, transport: str, serving: Callable[..., Server]) -> Server:
    """The server that `serving` starts with these settings, as clients of HTTP/2 see it: nobody else may ask for it."""
    server = serving(**http2_settings(pool, transport))
    if transport == "h2tls":
        server.scheme = "https"
        server.wire_options = {"context": client(pool.authority, alpn=("h2",))}
    server.wire_type = Http2Client
    return server


def http2_settings(pool: Pool, transport: str) -> dict[str, str]:
    return HTTP2 if transport == "h2" else {"http_protocols": "h2,h1", "certificate": pool.issued.pair}


def conforming(pool: Pool, worker_class: str, transport: str, **more: Any) -> Server:
    if transport in OVER_HTTP2:
        return over_http2(pool, transport, partial(conforming, pool, worker_class, "tcp", **more))
    if transport in BY_VARS:
        return by_vars(pool, transport, partial(conforming, pool, worker_class, "tcp", **more))
    return pool.get(
        worker_class=worker_class,
        transport=transport,
        keep_alive=5,
        body_buffer_size=BODY_BUFFER,
        env={"SCRIPT_NAME": ""},
        **more,
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Nobody speaks HTTP/1.0 and HTTP/2 at once: those pairs are no tests."""
    apart = [item for item in items if _is_impossible(item)]
    if apart:
        config.hook.pytest_deselected(items=apart)
        items[:] = [item for item in items if not _is_impossible(item)]


def _is_impossible(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    parameters = call.params if call else {}
    return _transport(parameters) in OVER_HTTP2 and parameters.get("version") == "1.0"


def _transport(parameters: dict[str, Any]) -> str:
    return str(parameters.get("server", "")).rpartition("-")[2]


BY_HTTP1 = (
    "sync-tcp",
    "sync-unix",
    "gthread-tcp",
    "gthread-unix",
    "gevent-tcp",
    "asgi-tcp",
    "asgi-unix",
    "tornado-tcp",
    "aiohttp-tcp",
)
"""Classes and transports of the suites that are about HTTP/1."""
BY_HTTP2 = tuple(
    f"{alias}-{transport}"
    for alias in (*THREADED, *GREEN, *EVENT_LOOPS, *SERVERS_OF_CLASSES)
    for transport in OVER_HTTP2
)


@pytest.fixture(scope="session", params=each(*BY_HTTP1))
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
