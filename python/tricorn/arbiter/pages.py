"""The shared pages of the scoreboard: one for each worker, in memory that forks share."""

from __future__ import annotations

from mmap import mmap

from tricorn.metrics.scoreboard import Scoreboard


class Pages:
    """Pages that nobody wrote to cost address space and no memory, so there are more than workers."""

    def __init__(self, size: int, count: int) -> None:
        self.size = size
        """Bytes of each."""
        self.region = memoryview(mmap(-1, size * count))
        """All pages, one after another: the cores look into one another's."""
        self._free = list(range(count - 1, -1, -1))

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
