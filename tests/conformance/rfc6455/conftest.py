"""Servers of WebSockets, and a connection to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.conformance.conftest import OVER_HTTP2, http2_settings
from tests.conftest import Pool
from tests.harness import Server
from tests.harness.frames import Frames
from tests.harness.relay import Relay
from tests.harness.tls import client

MESSAGE_LIMIT = 1 << 20
Open = Callable[..., Frames]


def echoing(pool: Pool, transport: str, **more: Any) -> Server:
    """Serves WebSockets; over HTTP/2 by a relay, so that a test is none the wiser."""
    if transport not in OVER_HTTP2:
        options = {"worker_class": "asgi", "websocket_max_message_size": MESSAGE_LIMIT, **more}
        return pool.get("sockets:application", transport=transport, **options)
    server = echoing(pool, "tcp", **http2_settings(pool, transport), **more)
    if not is_by_http2(server):
        context = client(pool.authority, alpn=("h2",)) if transport == "h2tls" else None
        server.address = pool.stack.enter_context(Relay(server.address, context)).address
    return server


def is_by_http2(server: Server) -> bool:
    """Clients connect to a relay, and not to its own port."""
    return not isinstance(server.address, str) and server.address[1] != server.port


@pytest.fixture(scope="session", params=["tcp", "unix", "h2", "h2tls"])
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    return echoing(pool, request.param)


@pytest.fixture(scope="session", params=["tcp", "h2"])
def tcp_server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    return echoing(pool, request.param)


@pytest.fixture
def open_socket(server: Server) -> Iterator[Open]:
    """Opens WebSockets at a path, with more fields; all are closed at the end, however it ends."""
    with ExitStack() as stack:

        def open_one(target: str = "/echo", *fields: tuple[str, str], **options: float) -> Frames:
            return stack.enter_context(Frames(server.address, target, *fields, **options))

        yield open_one


@pytest.fixture
def socket(open_socket: Open) -> Frames:
    """One that echoes, without extensions."""
    return open_socket()
