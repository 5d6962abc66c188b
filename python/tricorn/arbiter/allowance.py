"""A limit for what a worker may send to the arbiter, so that no worker takes all of its time."""

from __future__ import annotations

BURST = 16 << 20
"""Stacks of a thousand requests that have run for too long at once are some 10 MB."""
RATE = 1 << 20
"""Bytes per second."""
MESSAGE = 200
"""Bytes that a message counts besides its own: decoding it costs more than reading a few bytes."""


class Allowance:
    """A token bucket, of bytes."""

    def __init__(self) -> None:
        self._left: float = BURST
        self._at: float | None = None

    def take(self, size: int, messages: int, now: float) -> bool:
        """Whether there was enough left."""
        if self._at is not None:
            self._left = min(BURST, self._left + (now - self._at) * RATE)
        self._at = now
        self._left -= size + messages * MESSAGE
        return self._left >= 0
