"""Looks, during `drain_delay`, whether requests still come: if not, the load balancers have noticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tricorn.arbiter.gauges import has_backlog
from tricorn.arbiter.policy.events import Quiet
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.config.settings.processes import HOSTED

if TYPE_CHECKING:
    from tricorn.arbiter.effects import Effects

PAUSE = 0.25
"""Seconds between looks."""


class Silence:
    """For how long no request has come, to any worker."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._next: float | None = None
        """When to look again; None: it was not begun."""
        self._since = 0.0
        self._seen = (0, 0)

    def next_look(self, state: State) -> float:
        """NEVER where silence ends nothing, or a class that has no core (`hosted`) counts nothing."""
        if state.drain_at is None or state.policy.drain_quiet <= 0:
            return NEVER
        if self._effects.generation.worker_class.alias == HOSTED:
            return NEVER
        return -NEVER if self._next is None else self._next

    def look(self, state: State, now: float) -> Iterator[Quiet]:
        if now < self.next_look(state):
            return
        seen = self._count()
        if self._next is None or seen != self._seen or has_backlog(self._effects.generation.listeners):
            self._seen, self._since = seen, now
        enough = state.policy.drain_quiet
        self._next = now + min(PAUSE, enough)
        if now - self._since >= enough:
            yield Quiet(enough)

    def _count(self) -> tuple[int, int]:
        """Connections and requests that have come, whatever became of them. What ends changes neither."""
        connections = requests = 0
        for handle in self._effects.processes.handles.values():
            snapshot = handle.snapshot()
            if snapshot is not None:
                figures = snapshot.figures
                connections += figures["accepted"]
                requests += figures["requests"] + figures["in_flight"] + figures["queued"]
        return connections, requests
