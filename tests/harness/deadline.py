"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], what: str, *, within: float = 10.0, every: float = 0.01) -> T:
    """The first true value of `condition`; fails with `what` if it does not come in time."""
    end = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError(f"not within {within:g} s: {what}")
        time.sleep(every)
