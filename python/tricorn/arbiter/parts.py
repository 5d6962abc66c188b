"""The parts of a running server, as control requests, periodic jobs and the loop use them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tricorn.arbiter.generation import Generation
from tricorn.arbiter.generations import Generations
from tricorn.arbiter.hook_api import Server
from tricorn.arbiter.process_table import ProcessTable
from tricorn.arbiter.upgrade import Upgrade
from tricorn.metrics.scoreboard import Ledger
from tricorn.record import Record
from tricorn.unpatched import time

if TYPE_CHECKING:
    from tricorn.stalls.keeper import Stalls


class Statistics:
    """Counts since the start of the server, kept for control requests and, in the ledger, for metrics."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.began = time.monotonic()
        self.exits: Counter[str] = Counter()
        """Ended workers by cause."""
        self.reloads: Counter[str] = Counter()
        """Reloads by result."""
        self.stalls: Stalls | None = None
        """Created by the first stall."""

    def count_exit(self, cause: str) -> None:
        self._ledger.exited(cause)
        self.exits[cause] += 1

    def count_reload(self, result: str) -> None:
        self._ledger.reloaded(result)
        self.reloads[result] += 1


class Parts(Record):
    server: Server
    generations: Generations
    processes: ProcessTable
    upgrade: Upgrade
    statistics: Statistics

    @property
    def generation(self) -> Generation:
        """The generation in force."""
        return self.generations.current
