"""The same suite on both event loops, over TCP and over a unix socket."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.conformance.asgi3.play import Stage
from tests.conformance.conftest import BY_VARS, OVER_HTTP2, by_vars, over_http2
from tests.conftest import Pool
from tests.harness import REFERENCE, Server
from tests.harness.front_end_client import FrontEndClient
from tests.harness.http2_client import Http2Client
from tests.harness.needs import needs


def playing(pool: Pool, loop: str, transport: str = "tcp", **more: Any) -> Server:
    if loop == "uvloop":
        needs("uvloop")
    if REFERENCE:
        pytest.skip("the reference server keeps to ASGI in its own way")
    if transport in OVER_HTTP2:
        return over_http2(pool, transport, partial(playing, pool, loop, "tcp", **more))
    if transport in BY_VARS:
        return by_vars(pool, transport, partial(playing, pool, loop, "tcp", **more))
    return pool.get(
        "asgi.play:application",
        worker_class="asgi",
        transport=transport,
        asgi_loop=loop,
        keep_alive=30,
        **more,
    )


@pytest.fixture(
    scope="session",
    params=["asyncio-tcp", "uvloop-unix", "asyncio-h2", "uvloop-h2tls", "asyncio-uwsgi", "uvloop-fastcgi"],
)
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    loop, _, transport = request.param.partition("-")
    return playing(pool, loop, transport)


@pytest.fixture(scope="session")
def tcp_server(pool: Pool) -> Server:
    return playing(pool, "asyncio")


@pytest.fixture(scope="session")
def unix_server(pool: Pool) -> Server:
    return playing(pool, "uvloop", "unix")


@pytest.fixture
def stage(server: Server) -> Stage:
    return Stage(server)


@pytest.fixture
def hasty(server: Server, pool: Pool) -> Stage:
    """One whose requests are cancelled as soon as their client has left."""
    loop, transport = ("uvloop", "unix") if isinstance(server.address, str) else ("asyncio", "tcp")
    if server.wire_type is Http2Client:
        loop, transport = ("uvloop", "h2tls") if server.scheme == "https" else ("asyncio", "h2")
    if server.wire_type is FrontEndClient:
        transport = server.wire_options["protocol"]
        loop = "asyncio" if transport == "uwsgi" else "uvloop"
    return Stage(playing(pool, loop, transport, asgi_disconnect_grace_period=0))


@pytest.fixture(params=["1.0", "1.1"], ids=["http10", "http11"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)
