"""Waits for conditions, and for periods that a test is about."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = float(os.environ.get("TEST_PATIENCE", "60"))
"""Seconds after which what a test waits for will not come any more. Long, since a machine may stand still for a moment,
and free where all is well; `make mutants`, where much never comes, sets it lower."""
AT_ONCE = 25.0
"""Seconds for what does not wait for `graceful_timeout` or another limit of 30 s: a moment on an idle machine."""
SELDOM = 0.03
"""Seconds between two looks, at most, where nothing else is asked for."""


def elapse(seconds: float) -> None:
    """Sleeps for a period that is part of the test: a limit passes, or the server is to do nothing."""
    time.sleep(seconds)


def until(condition: Callable[[], T | None], what: str, *, within: float = PATIENCE, every: float = 0.01) -> T:
    """The first true value of `condition`; fails with `what` if it does not come in time.

    Asks `every` so many seconds, or after a tenth of the time that it has waited: what takes seconds is asked for less
    often than what takes milliseconds.
    """
    began = time.monotonic()
    end = began + within
    while True:
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now >= end:
            raise AssertionError(f"not within {within:g} s: {what}")
        time.sleep(max(every, min((now - began) / 10, SELDOM)))
