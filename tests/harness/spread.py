"""Connections of which it is known which worker has each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from tests.harness.server import Server
from tests.harness.wire import Wire, request


def by_worker(
    server: Server, stack: ExitStack, count: int = 0, each: int = 0, connect: Callable[[], Wire] | None = None
) -> dict[int, list[Wire]]:
    """So many connections that have been answered, by the worker that has them; every worker has `each` at least.

    The application takes `/?s=SECONDS` and answers with its `pid`.
    """
    found: dict[int, list[Wire]] = {pid: [] for pid in server.worker_pids()}
    while sum(map(len, found.values())) < count or min(map(len, found.values())) < each:
        wires = [stack.enter_context((connect or server.connect)()) for _ in range(len(found))]
        for wire in wires:  # at once, so that not all go to the same worker
            wire.send(request("GET", "/?s=0.01"))
        for wire in wires:
            found[int(wire.reply().json()["pid"])].append(wire)
    return found
