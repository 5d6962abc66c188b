"""Errors that keep a measurement from being made."""

from __future__ import annotations

from tricorn.errors import TricornError


class BenchError(TricornError):
    """Nothing can be measured or reported: the message says what is in the way, and what to do."""


class DidNotServe(BenchError):
    """One server could not be started, or gave a wrong answer. The others can go on without it."""


class Interrupted(BaseException):
    """A signal ends the measurement. No `Exception`: nothing on the way may take it for a failed server."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
