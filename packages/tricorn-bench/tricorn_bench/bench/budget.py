"""Time budget of a run (`--budget`): shortens rounds so that all of them end in time."""

from __future__ import annotations

from collections.abc import Callable

LEAST = 1.0
"""Seconds of load: less says nothing about a rate."""


class Budget:
    """Rounds get shorter as it turns out what starting, checking, warming up and stopping take on this machine."""

    def __init__(self, ends: float, around: float, clock: Callable[[], float]) -> None:
        """`ends` is a moment of the clock; `around` what the servers of a round are expected to take without load."""
        self._ends, self._around, self._clock = ends, around, clock
        self._begun = clock()
        self.shortest: float | None = None
        """The seconds of the shortest load; None while none had to be shorter than what was asked for."""

    def begin(self, rounds: int, loads: list[float]) -> Callable[[float], float]:
        """A round of `loads` begins, the first of so many: what the seconds of each load become."""
        self._begun = self._clock()
        room = (self._ends - self._begun) / rounds - self._around
        share = room / sum(loads) if loads else 1.0

        def shortened(seconds: float) -> float:
            if share >= 1.0 or seconds <= LEAST:
                return seconds
            made = max(LEAST, round(seconds * share, 2))
            self.shortest = min(made, self.shortest or made)
            return made

        return shortened

    def end(self, loaded: float) -> None:
        """The round has ended, with so many seconds of load."""
        self._around = max(0.0, self._clock() - self._begun - loaded)
