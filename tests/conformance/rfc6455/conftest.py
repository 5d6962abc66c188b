"""Servers of WebSockets, and a connection to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.conftest import Pool
from tests.harness import Server
from tests.harness.frames import Frames

MESSAGE_LIMIT = 1 << 20
Open = Callable[..., Frames]


@pytest.fixture(scope="session", params=["tcp", "unix"])
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    return pool.get(
        "sockets:application",
        worker_class="asgi",
        transport=request.param,
        websocket_max_message_size=MESSAGE_LIMIT,
    )


@pytest.fixture(scope="session")
def tcp_server(pool: Pool) -> Server:
    return pool.get(
        "sockets:application",
        worker_class="asgi",
        transport="tcp",
        websocket_max_message_size=MESSAGE_LIMIT,
    )


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
