"""The shared pages of the scoreboard: one for each worker, in memory that forks share."""

from __future__ import annotations

from tricorn.metrics.scoreboard import Scoreboard
from tricorn.shared_memory import Memory

SIZE = 256 << 10
"""Bytes of a page, at least: for two thousand requests at once."""

COUNT = 1024


class Pages:
    """Pages that were never written to cost address space and no memory, so there are more than workers."""

    def __init__(self, size: int, count: int) -> None:
        self.size = size
        """Bytes of each."""
        self.count = count
        self.memory = Memory("tricorn-scoreboard", size * count)
        self.region = self.memory.view
        """All pages, one after another: the cores look into one another's."""
        self._free = list(range(count - 1, -1, -1))

    @classmethod
    def roomy(cls, size: int, count: int) -> Pages:
        """With room for what a reload may ask for, if the system gives so much address space.

        Workers see the pages that were there when they were forked: only one region for all generations lets each of
        them tell what all have counted.
        """
        try:
            return cls(max(size, SIZE), max(count, COUNT))
        except OSError:  # ulimit -v
            return cls(size, count)

    def holds(self, size: int, count: int) -> bool:
        return size <= self.size and count <= self.count

    def take(self) -> int | None:
        """The number of an empty page, or None if all are in use."""
        if not self._free:
            return None
        number = self._free.pop()
        Scoreboard(self.page(number)).clear()
        return number

    def give_back(self, number: int) -> None:
        self._free.append(number)

    def page(self, number: int) -> memoryview:
        return self.region[number * self.size : (number + 1) * self.size]
