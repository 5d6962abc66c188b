"""The arbiter's clock. It stands while the arbiter is stopped: SIGSTOP, a paused container, a frozen machine.

Workers are stopped with it, so that no deadline of theirs may pass meanwhile: a boot is not overdue, a request has not
had its graceful timeout, a heartbeat is not old.
"""

from __future__ import annotations

from collections.abc import Callable

from tricorn.unpatched import time

LATE = 1.0
"""Seconds by which a wait may end late without having been stopped: a machine may be busy."""
LONGEST_WAIT = 1.0
"""Seconds to wait at a time while workers have a deadline: a pause within one wait is known by its late end only."""


class PausableClock:
    """Monotonic seconds without the waits in which the arbiter was stopped."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lost = 0.0

    def now(self) -> float:
        return self._clock() - self._lost

    def wait(self, sleep: Callable[[float | None], object], timeout: float | None) -> None:
        """Sleeps for up to `timeout` seconds (None: without end).

        A wait that ends late is forgotten as a whole. When in it the pause began is not known, and a deadline that it
        led to would pass at the very moment in which all go on.
        """
        before = self._clock()
        sleep(timeout)
        took = self._clock() - before
        if timeout is not None and took > timeout + LATE:
            self._lost += took
