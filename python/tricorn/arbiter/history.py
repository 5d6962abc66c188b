"""Notes what all workers do together, for the page of the admin listener: every other second, for ten minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.arbiter.policy.state import NEVER

if TYPE_CHECKING:
    from tricorn.arbiter.effects import Effects

INTERVAL = 2.0
"""Seconds from one note to the next; `INTERVAL` in the core's `scoreboard/history.rs`."""


class History:
    """The samples lie behind the ledger, in memory that workers read (`scoreboard/history.rs`)."""

    def __init__(self, effects: Effects, now: float) -> None:
        self._effects = effects
        self._next = now

    def next_note(self) -> float:
        """When the next one is due; NEVER if there is no page to show them."""
        generation = self._effects.generation
        return self._next if generation.admin and generation.config.admin_page else NEVER

    def note(self, now: float) -> None:
        if now < self.next_note():
            return
        self._next += INTERVAL
        if self._next <= now:  # notes that were missed are not made up for
            self._next = now + INTERVAL
        pages = self._effects.generation.pages
        if pages is not None:
            self._effects.processes.note(pages)
