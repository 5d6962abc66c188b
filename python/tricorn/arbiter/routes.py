"""Cost of the application's routes: memory that all workers write, and that outlives them (`route_metrics`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tricorn.metrics.scoreboard import Route, RoutePages, route_bytes
from tricorn.shared_memory import Memory

if TYPE_CHECKING:
    from tricorn.log import Logger

WORKERS = 1024
"""Workers that count at a time: as many as there are pages (`pages.COUNT`). What none counts to takes no memory."""


class Routes:
    """Made when a generation first wants it, and for the arbiter's life: counts that are told never fall."""

    def __init__(self) -> None:
        self._memory: Memory | None = None
        self._pages: RoutePages | None = None
        self._failed = False

    def memory(self, named: int, log: Logger) -> memoryview | None:
        """Returns the memory for a worker; None if nothing is to be counted. `named` routes have a name of their own.

        The first number that is not 0 holds until the server ends.
        """
        if named == 0 or self._failed:
            return None
        if self._memory is None:
            try:
                self._memory = Memory("tricorn-routes", route_bytes(named, WORKERS))
            except OSError as error:  # ulimit -v
                self._failed = True
                log.warning("Not enough memory for route metrics; they are switched off: %s", error.strerror or error)
                return None
            self._memory.release()
            self._pages = RoutePages(self._memory.view, named)
        return self._memory.view

    def bury(self, slot: int) -> None:
        """The worker that had this slot is gone."""
        if self._pages is not None:
            self._pages.bury(slot)

    def read(self) -> Sequence[Route] | None:
        """Reads what all workers have counted that ever were; the route `other` last. None: nothing is counted."""
        return None if self._pages is None else self._pages.read()
