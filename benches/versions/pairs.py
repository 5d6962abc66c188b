"""Two servers side by side under one load generator, in turns of a second; what their pairs of turns say."""

from __future__ import annotations

import math
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from tricorn_bench.bench.configuration import Configuration

from benches.harness.load import good, send
from benches.harness.process import Server, free_port, python_path
from benches.harness.servers import spent, weigh


class Turn(NamedTuple):
    requests: int
    #: CPU of the server per request, user and system, all its processes.
    cpu_us: float


class Pairs(NamedTuple):
    base: list[Turn]
    this: list[Turn]
    #: MiB of all processes, after the last turn.
    base_pss: float
    this_pss: float

    def ratios(self) -> list[float]:
        return sorted(this.cpu_us / base.cpu_us for base, this in zip(self.base, self.this, strict=True))

    def ratio(self) -> float:
        return statistics.median(self.ratios())

    def interval(self) -> tuple[float, float]:
        """About 95 %: the order statistics around the median that the sign test allows."""
        ratios = self.ratios()
        reach = max(0, math.floor(len(ratios) / 2 - 0.98 * math.sqrt(len(ratios))))
        return ratios[reach], ratios[-1 - reach]


class Case(NamedTuple):
    """`more`: fields of `tricorn_bench.load.Plan`."""

    name: str
    path: str = "/"
    more: Mapping[str, Any] = {}
    #: `module:name`, where it is not the application that each class has.
    app: str = ""

    def cost(self, server: Server) -> Turn:
        """Of a second. Raises DidNotServe when an answer is an error."""
        before = spent(server)
        requests = good(send(server.port, self.path, **self.more))
        return Turn(requests, (spent(server) - before) / requests * 1e6)


class Side(NamedTuple):
    """One of those that are compared: a package, and settings of its own (`TRICORN_…`)."""

    tree: Path
    environment: Mapping[str, str] = {}


class Pairing(NamedTuple):
    """The same configuration of tricorn from several trees, or with other settings."""

    line: str
    application: str
    sides: Sequence[Side]
    case: Case

    def started(self, side: Side, seed: int, stack: ExitStack) -> Server:
        port = free_port()
        command = Configuration.parse(self.line).command(sys.executable, self.case.app or self.application, port, None)
        environment = {
            "PYTHONPATH": os.pathsep.join(python_path(side.tree)),
            "PYTHONHASHSEED": str(seed),
            **side.environment,
        }
        return stack.enter_context(Server(command, port, environment))


def measure(pairing: Pairing, count: int, starts: int) -> Pairs:
    """`count` pairs of turns of the servers of two sides, the first one's first in every other pair.

    Both are started anew `starts` times, each time with another seed for the hashes of strings: where a process has its
    memory, and which keys of a dict collide, is a matter of luck, and worth some percent.
    Raises DidNotServe when one does not start or answers with an error.
    """
    found = [measure_once(pairing, math.ceil(count / starts), start) for start in range(starts)]
    base, this = ([turn for pairs in found for turn in getattr(pairs, name)] for name in ("base", "this"))
    return Pairs(base, this, found[-1].base_pss, found[-1].this_pss)


def measure_once(pairing: Pairing, count: int, seed: int) -> Pairs:
    with ExitStack() as stack:
        servers = [pairing.started(side, seed, stack) for side in pairing.sides]
        for server in servers:
            pairing.case.cost(server)  # what is made for the first requests only
        turns: list[list[Turn]] = [[], []]
        for number in range(count):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                turns[which].append(pairing.case.cost(servers[which]))
        base_pss, this_pss = map(weigh, servers)
    return Pairs(turns[0], turns[1], base_pss, this_pss)
