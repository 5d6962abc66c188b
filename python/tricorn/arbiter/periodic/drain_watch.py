"""Watches, during `drain_delay`, whether requests still come: if not, the load balancers have noticed."""

from __future__ import annotations

from collections.abc import Iterator

from tricorn.arbiter.parts import Parts
from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.periodic.statsd_gauges import has_backlog
from tricorn.arbiter.policy.events import Quiet
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.config.settings.processes import HOSTED

PAUSE = 0.25
"""Seconds between looks."""


class DrainWatch(Periodic):
    """Measures for how long no request has come, to any worker."""

    failure = "The pages of workers cannot be read"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._next: float | None = None
        """The next look; None before the first one."""
        self._since = 0.0
        self._seen = (0, 0)

    def due(self, state: State, now: float) -> float:
        """Returns NEVER where silence ends nothing, or a class that has no core (`hosted`) counts nothing."""
        if state.drain_at is None or state.policy.drain_quiet <= 0:
            return NEVER
        if self._parts.generation.worker_class.alias == HOSTED:
            return NEVER
        return -NEVER if self._next is None else self._next

    def run(self, state: State, now: float) -> Iterator[Quiet]:
        is_first, enough = self._next is None, state.policy.drain_quiet
        self._next = now + min(PAUSE, enough)
        seen = self._count()
        if is_first or seen != self._seen or has_backlog(self._parts.generation.listeners):
            self._seen, self._since = seen, now
        if now - self._since >= enough:
            yield Quiet(enough)

    def _count(self) -> tuple[int, int]:
        """Counts connections and requests that have come, whatever became of them: what ends changes neither."""
        connections = requests = 0
        for handle in self._parts.processes.handles.values():
            snapshot = handle.snapshot()
            if snapshot is not None:
                figures = snapshot.figures
                connections += figures["accepted"]
                requests += figures["requests"] + figures["in_flight"] + figures["queued"]
        return connections, requests
