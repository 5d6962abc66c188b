"""Keeps the arbiter running when something that a worker has written or sent makes it raise an exception."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn.log import Logger

PAUSE = 60.0
"""Seconds between two reports of the same failure."""


class Guard:
    def __init__(self, log: Callable[[], Logger], clock: Callable[[], float]) -> None:
        self._log = log
        self._clock = clock
        self._reported: dict[str, float] = {}

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """Logs an exception of the block, and suppresses it. `what`: a sentence for the log, without its full stop."""
        try:
            yield
        except Exception:
            now = self._clock()
            if now >= self._reported.get(what, now):
                self._reported[what] = now + PAUSE
                self._log().exception("%s (this is a defect of tricorn).", what)
