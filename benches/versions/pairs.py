"""Two servers side by side under one load generator, in turns of a second; what their pairs of turns say."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tricorn.bench import proc

from benches.end_to_end.rounds import worker_memory
from benches.harness.load import Load, Seen, echo, run
from benches.harness.process import ROOT, DidNotServe, Server, free_port

CONNECTIONS = 64


class Turn(NamedTuple):
    requests: int
    #: CPU of the server per request, user and system, all its processes.
    cpu_us: float


class Pairs(NamedTuple):
    base: list[Turn]
    this: list[Turn]
    #: Of the worker, bytes, after the last turn.
    base_pss: int
    this_pss: int

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
    name: str
    #: Sends for a second; how many requests (or messages) were answered without an error.
    load: Callable[[int], int]


def under_load(name: str, load: Load) -> Case:
    def one_second(port: int) -> int:
        return good(run(load, port, CONNECTIONS, 1))

    return Case(name, one_second)


def good(seen: Seen) -> int:
    if seen.errors:
        raise DidNotServe(f"{seen.errors} errors of {seen.requests} requests")
    return seen.requests


def websocket(name: str) -> Case:
    def one_second(port: int) -> int:
        return good(echo(port, CONNECTIONS, 1, 125))

    return Case(name, one_second)


def measure(command: Callable[[int], list[str]], trees: Sequence[Path], case: Case, count: int, starts: int) -> Pairs:
    """`count` pairs of turns of the servers of two trees, the first one's first in every other pair.

    Both are started anew `starts` times, each time with another seed for the hashes of strings: where a process has its
    memory, and which keys of a dict collide, is a matter of luck, and worth some percent.
    Raises DidNotServe when one does not start or answers with an error.
    """
    found = [measure_once(command, trees, case, math.ceil(count / starts), start) for start in range(starts)]
    base, this = ([turn for pairs in found for turn in getattr(pairs, name)] for name in ("base", "this"))
    return Pairs(base, this, found[-1].base_pss, found[-1].this_pss)


def measure_once(
    command: Callable[[int], list[str]], trees: Sequence[Path], case: Case, count: int, seed: int
) -> Pairs:
    with ExitStack() as stack:
        servers = []
        for tree in trees:
            port = free_port()
            environment = {"PYTHONPATH": f"{ROOT}:{tree}", "PYTHONHASHSEED": str(seed)}
            servers.append(stack.enter_context(Server(command(port), port, environment)))
        for server in servers:
            case.load(server.port)
        turns: list[list[Turn]] = [[], []]
        for number in range(count):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                turns[which].append(one_turn(servers[which], case))
        base_pss, this_pss = (worker_memory(server.pids()).pss for server in servers)
    return Pairs(turns[0], turns[1], base_pss, this_pss)


def one_turn(server: Server, case: Case) -> Turn:
    pids = server.pids()
    before = proc.cpu(pids)
    requests = case.load(server.port)
    spent = (proc.cpu(pids) - before).total
    if not requests:
        raise DidNotServe("answered nothing")
    return Turn(requests, spent / requests * 1e6)
