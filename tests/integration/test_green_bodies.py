"""A body that comes slowly waits in the core: it costs no greenlet, and the application knows nothing of it."""

from __future__ import annotations

import pytest

from tests.conftest import Pool
from tests.harness import Crowd, Server, until
from tests.harness.needs import needs

SLOW = 500
LENGTH = 1000


@pytest.fixture(scope="module", params=["gevent", "eventlet"])
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    needs(request.param)
    return pool.get("greenlets:application", worker_class=request.param, worker_connections=2000)


def test_five_hundred_bodies_at_a_byte_a_second(server: Server) -> None:
    before = server.get("/").json()
    head = f"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {LENGTH}\r\n\r\n".encode()
    with Crowd(server.address, SLOW, b"b" * LENGTH, first=head, every=1.0) as crowd, server.connect() as wire:
        until(lambda: all(len(client.say) < LENGTH for client in crowd.clients), "each has sent a byte of its body")
        for _ in range(20):
            assert wire.get("/").json() == before
        assert len(crowd.open()) == SLOW
