"""Errors of a run before it begins, and its interruption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.errors import TricornError

if TYPE_CHECKING:
    from tricorn_bench.load.result import Result


class LoadError(TricornError):
    """No load can be sent: the operator's, or the server does not listen."""


class Interrupted(KeyboardInterrupt):
    """SIGINT came during a run."""

    def __init__(self, result: Result | None) -> None:
        super().__init__()
        self.result = result
        """Measurements until then."""
