"""What becomes of requests that find no free thread: an effect for each setting. gunicorn has none of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.harness import Site, Wire, until
from tests.harness.site import rests
from tests.harness.wire import Reply, request


@contextmanager
def held(server: Site, directory: Path, wire: Wire | None = None) -> Iterator[Path]:
    """A request is in the application inside the block, and for as long as there is no file of the name it gets."""
    gate = directory / f"gate-{time.monotonic_ns()}"
    with ExitStack() as stack:
        holding = wire or stack.enter_context(server.connect())
        stack.callback(gate.touch)
        holding.send(request("GET", f"/gate?open={gate}"))
        until(lambda: inside(gate), "the request is in the application")
        yield gate
        gate.touch()
        assert holding.reply().status == 200


def inside(gate: Path) -> int:
    """How many requests the application was called for that wait at this gate."""
    return len(list(gate.parent.glob(f"{gate.name}.in.*")))


def waits(wire: Wire, seconds: float) -> bool:
    """Whether nothing is answered, and nothing closed, for so long."""
    return wire.still_open(seconds) and not wire.unread


def is_sent_away(reply: Reply) -> bool:
    return reply.status == 503 and bool(reply.get("Retry-After"))


def sees_queue_limit(directory: Path) -> None:
    with Site("queue_limit = 2\n") as server, ExitStack() as stack, held(server, directory) as gate:
        wires = [stack.enter_context(server.connect()) for _ in range(3)]
        for wire in wires:
            wire.send(request("GET", "/hello"))
        until(lambda: not all(waits(wire, 0.02) for wire in wires), "one is answered though nothing is free")
        answered = [wire for wire in wires if not waits(wire, 0.1)]
        assert [is_sent_away(wire.reply()) for wire in answered] == [True]
        gate.touch()
        assert [wire.reply().status for wire in wires if wire not in answered] == [200, 200]


def sees_queue_timeout(directory: Path) -> None:
    with Site("queue_timeout = 1\n") as server:
        with held(server, directory), server.connect() as wire:
            began = time.monotonic()
            assert is_sent_away(wire.get("/hello"))
            assert 0.9 < time.monotonic() - began < 5
        assert server.calls() == 1, "the application was called for the first request only"


def order_of_service(config: str, directory: Path) -> str:
    """In which order the requests a, b and c are served that have waited for a while."""
    config += "accesslog = '-'\naccess_log_format = 'served %(U)s'\n"
    with Site(config) as server, ExitStack() as stack, held(server, directory) as gate:
        wires = [stack.enter_context(server.connect()) for _ in range(3)]
        for wire, name in zip(wires, "abc", strict=True):
            wire.send(request("GET", f"/hello/{name}"))
            assert waits(wire, 0.15)
        gate.touch()
        assert [wire.reply().status for wire in wires] == [200, 200, 200]
        return "".join(match[1] for match in server.out.wait("served /hello/(.)", count=3))


def sees_queue_order(directory: Path) -> None:
    assert order_of_service("queue_order = 'adaptive'\n", directory) == "cba"
    assert order_of_service("queue_order = 'fifo'\n", directory) == "abc"


def sees_max_concurrency(directory: Path) -> None:
    threads = "worker_class = 'gthread'\nthreads = 4\n"
    run_at_once(1, threads + "max_concurrency = 1\n", 1, directory)
    run_at_once(1, threads + "max_concurrency = 1\nworkers = 2\n", 2, directory)
    # Two for one worker, one for the other.
    run_at_once(3, threads + "max_concurrency = 3\nworkers = 2\n", 2, directory)
    # Before anything is measured, a quarter of the threads.
    run_at_once(4, "worker_class = 'gthread'\nthreads = 16\nmax_concurrency = 'auto'\n", 1, directory)


def run_at_once(most: int, config: str, workers: int, directory: Path) -> None:
    with Site(config, workers=workers) as server, ExitStack() as stack:
        # A worker that boots later has its share of the limit, though others run as many as they may.
        until(lambda: all(map(rests, server.worker_pids())), "all workers serve")
        gate = stack.enter_context(held(server, directory))
        wires = [stack.enter_context(server.connect()) for _ in range(most + 2)]
        for wire in wires:
            wire.send(request("GET", f"/gate?open={gate}"))
        until(lambda: inside(gate) >= most, "as many run as may")
        assert all(waits(wire, 0.2) for wire in wires)
        assert inside(gate) == most, "threads are free, and yet the others wait"
        gate.touch()
        assert {wire.reply().status for wire in wires} == {200}


def sees_handover(directory: Path) -> None:
    """Of three connections to two workers, two have the same one. While that is busy with the first of them:"""
    config = "workers = 2\nkeepalive = 30\n"
    with Site(config, workers=2, extra=("--no-handover",)) as server, ExitStack() as stack:
        first, second, worker = neighbours(server, stack)
        with held(server, directory, first) as gate:
            second.send(request("GET", "/pid"))
            assert waits(second, 0.5), "though the other worker is idle"
            gate.touch()
            assert int(second.reply().body) == worker
    with Site(config, workers=2) as server, ExitStack() as stack:
        first, second, worker = neighbours(server, stack)
        with held(server, directory, first):
            assert int(second.get("/pid").body) != worker
            assert int(second.get("/pid").body) != worker, "it stays where it is now"


def sees_affinity(directory: Path) -> None:
    """A name that a client gives itself is its first worker's."""
    for names, count in (("header:x-room", 1), ("off", 2)):
        config = f"workers = 2\nkeepalive = 30\naffinity = {names!r}\n"
        with Site(config, workers=2) as server, ExitStack() as stack:
            wires: dict[int, Wire] = {}
            while len(wires) < 2:
                wire = stack.enter_context(server.connect())
                wires.setdefault(int(wire.get("/pid").body), wire)
            assert len({wire.get("/pid", ("X-Room", "7")).body for wire in wires.values()}) == count


def neighbours(server: Site, stack: ExitStack) -> tuple[Wire, Wire, int]:
    """Two connections that the same worker has, and its pid."""
    seen: dict[int, Wire] = {}
    while True:
        wire = stack.enter_context(server.connect())
        worker = int(wire.get("/pid").body)
        if worker in seen:
            return seen[worker], wire, worker
        seen[worker] = wire
