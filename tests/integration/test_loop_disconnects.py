"""Clients of an event loop that leave: what was held for them is given back, and thousands leave nothing."""

from __future__ import annotations

import socket
import time
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import pytest

from tests.harness import Server, proc, until
from tests.harness.needs import needs
from tests.harness.postgres import Postgres, postgres  # noqa: F401 (a fixture)
from tests.harness.wire import request

CLIENTS = {"asyncio": 10_000, "uvloop": 20_000}
ROUNDS = 4
FIRST = 5_000
AT_ONCE = 200
NO_UVLOOP = pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop is not installed")
LOOPS = pytest.mark.parametrize("loop", ["asyncio", pytest.param("uvloop", marks=NO_UVLOOP)])

pytestmark = pytest.mark.beyond_reference("of the reference server's class only its defects are noted")

REQUESTS = [
    request("GET", "/held"),
    request("GET", "/listens"),
    request("GET", "/streams"),
    request("POST", "/uploads", [("Content-Length", "100000")]) + b"u" * 1000,
    request("POST", "/uploads", [("Transfer-Encoding", "chunked")]) + b"5\r\nhello\r\n3\r\nab",
    request("GET", "/held") * 3,
    b"GET /held HTTP/1.1\r\nHost: t\r\nX-Half: ",
]


def leave(sock: socket.socket, crashes: bool) -> None:
    if crashes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()


def come_and_go(server: Server, count: int) -> None:
    """So many clients, some at a time: each asks for something, some hear the beginning of an answer, and all leave."""
    for begin in range(0, count, AT_ONCE):
        socks = []
        for number in range(begin, min(begin + AT_ONCE, count)):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(20)
            sock.connect(server.address)
            sock.sendall(REQUESTS[number % len(REQUESTS)])
            socks.append(sock)
        for number, sock in enumerate(socks, begin):
            if number % len(REQUESTS) == 2:
                assert sock.recv(100)
            leave(sock, number % 2 == 0)
        # Else a busy machine has thousands there at once, and the worker keeps the memory that they needed.
        until(lambda: counts(server)["held"] == 0, "the server has seen them leave")


def counts(server: Server, objects: bool = False) -> Any:
    return server.get("/counts?objects" if objects else "/counts").json()


@LOOPS
@pytest.mark.timeout(300)
def test_clients_that_leave_leave_nothing_behind(loop: str) -> None:
    options = {"asgi_loop": loop, "asgi_disconnect_grace_period": 0, "transport": "unix"}
    with Server("asgi.leaving:application", worker_class="asgi", **options) as server:
        come_and_go(server, FIRST)
        first = rested(server)
        worker = server.worker_pid()
        memory, descriptors = [proc.private_bytes(worker)], proc.descriptors(worker)
        for _ in range(ROUNDS):
            come_and_go(server, CLIENTS[loop] // ROUNDS)
            last = rested(server)
            memory.append(proc.private_bytes(worker))
        assert last["seen"] - first["seen"] > CLIENTS[loop] / 2
        assert last["tasks"] <= first["tasks"]
        until(
            lambda: counts(server, objects=True)["objects"] - first["objects"] < CLIENTS[loop] / 1000,
            "less than one object for each thousand of them is left",
        )
        until(lambda: proc.descriptors(worker) <= descriptors, "every descriptor is given back")
        # A client that leaves something behind does so in each round. The allocator keeps what a crowd needed once.
        assert min(later - sooner for sooner, later in pairwise(memory)) < (8 << 20) / ROUNDS, memory
        assert server.worker_pid() == worker
        assert not server.log.matching("Traceback|panicked|never retrieved|Error")


def rested(server: Server) -> Any:
    until(lambda: counts(server)["held"] == 0, "nothing is held any more")
    return counts(server, objects=True)


@LOOPS
def test_a_database_connection_is_given_back(postgres: Postgres, loop: str) -> None:  # noqa: F811
    """In the middle of a query, and of its rows; a request that comes after finds room in a database that was full."""
    needs("psycopg")
    most = 20
    url = postgres.url()
    postgres.rested().execute(f"ALTER ROLE ordinary CONNECTION LIMIT {most}")
    try:
        with Server(
            "asgi.leaving:application",
            worker_class="asgi",
            asgi_loop=loop,
            asgi_disconnect_grace_period=0,
            env={"DATABASE_URL": url},
        ) as server:
            wires = [server.connect() for _ in range(most)]
            for number, wire in enumerate(wires):
                wire.send(request("GET", "/rows" if number % 2 else "/query?s=60"))
            until(lambda: postgres.connections() == most, "each has its connection")
            # PostgreSQL takes no notice of a cancellation that overtakes its query, and psycopg gives up after 5 s.
            until(lambda: postgres.asleep() == most / 2, "PostgreSQL has begun each query")
            assert server.get("/query?s=0").status == 500, "there is no room for another"
            began = time.monotonic()
            for number, wire in enumerate(wires):
                wire.close() if number % 4 < 2 else wire.reset()
            until(lambda: postgres.connections() == 0, "all are given back")
            assert time.monotonic() - began < 20
            assert counts(server)["held"] == 0
            assert server.get("/query?s=0").json() == 42
    finally:
        postgres.execute("ALTER ROLE ordinary CONNECTION LIMIT -1")
