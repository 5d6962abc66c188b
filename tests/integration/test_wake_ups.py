"""A new connection wakes one worker, whose turn comes when it has as many connections as the others."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack

import pytest

from tests.harness import Server, Wire, each, proc, until
from tests.harness.wire import request

WORKERS = 6
HUBS = pytest.mark.parametrize(
    "worker_class", each("gevent", "eventlet", "asgi-uvloop", "asgi-asyncio", "tornado", "aiohttp")
)
"""Classes that wait in the event loop of another library."""
CLOSING = request("GET", "/pid", [("Connection", "close")])


def server_of(worker_class: str, workers: int = WORKERS, app: str = "gallery:application") -> Server:
    name, _, loop = worker_class.partition("-")
    loops = {"asgi_loop": loop} if loop else {}
    return Server(app, worker_class=name, workers=workers, keep_alive=60, **loops)


def waiting(server: Server) -> list[int]:
    """The workers, when the main thread of each has nothing to do."""
    pids = server.worker_pids()
    until(lambda: all(proc.sleeps(pid) for pid in pids), "the workers wait")
    return pids


@HUBS
def test_a_new_connection_wakes_one_worker(worker_class: str) -> None:
    with server_of(worker_class) as server:
        pids = waiting(server)
        before = sum(map(proc.voluntary_switches, pids))
        connections = 40
        for _ in range(connections):
            waiting(server)
            with server.connect() as wire:
                wire.send(CLOSING)
                assert wire.reply().status == 200
        waits = sum(map(proc.voluntary_switches, waiting(server))) - before
    # Where all are woken each of them has waited once more for every connection.
    assert waits < connections * WORKERS / 2


@pytest.mark.parametrize("worker_class", each("asgi-uvloop", "aiohttp"))
def test_the_end_of_a_connection_wakes_no_loop(worker_class: str) -> None:
    """What it leaves to be dropped is dropped at once: the monitor would wake the loop for it."""
    with server_of(worker_class, workers=1) as server:
        (pid,) = server.worker_pids()
        until(lambda: is_at_rest(pid), "the worker is at rest")
        before, connections = proc.voluntary_switches(pid), 30
        for _ in range(connections):
            with server.connect() as wire:
                wire.send(CLOSING)
                assert wire.reply().status == 200
            until(lambda: is_at_rest(pid), "the worker is at rest")
        assert proc.voluntary_switches(pid) - before < connections * 1.5


def is_at_rest(pid: int) -> bool:
    """Whether neither the loop nor the monitor came for anything in twenty ticks."""
    before = proc.wake_ups(pid)
    time.sleep(0.02)  # the period that is measured
    return proc.sleeps(pid) and proc.wake_ups(pid) == before


@HUBS
def test_connections_that_stay_are_spread_over_the_workers(worker_class: str) -> None:
    held: Counter[bytes] = Counter()
    with server_of(worker_class, workers=3) as server, ExitStack() as stack:
        for _ in range(12):
            waiting(server)
            wire = stack.enter_context(server.connect())
            held[wire.get("/pid").body] += 1
    # The kernel alone wakes the first one that waits: the same again and again.
    assert len(held) == 3
    assert max(held.values()) <= 6


@pytest.mark.parametrize("worker_class", each("gevent"))
def test_a_loop_that_exchanges_its_epoll_is_woken_in_its_turn_again(worker_class: str) -> None:
    """libev does that after a fork, and where a descriptor was closed of which a child has a copy."""
    with server_of(worker_class, workers=2, app="new_epoll:application") as server, ExitStack() as stack:
        wires: dict[bytes, Wire] = {}
        while len(wires) < 2:
            waiting(server)
            wire = stack.enter_context(server.connect())
            wires.setdefault(wire.get("/pid").body, wire)
        for wire in wires.values():
            wire.get("/reinit")
        # At first nothing but the monitors sees a newcomer. It is served all the same, and so are those after it.
        for pid in until_all_answer(server, set(wires), stack):
            assert pid in wires


def until_all_answer(server: Server, wanted: set[bytes], stack: ExitStack) -> list[bytes]:
    """Connections that stay are opened until each of these workers has taken one; the workers that took them."""
    takers: list[bytes] = []

    def one_more() -> bool:
        waiting(server)
        takers.append(stack.enter_context(server.connect()).get("/pid").body)
        return set(takers) >= wanted

    until(one_more, "each worker takes a connection")
    return takers
