"""Jobs that the arbiter's loop runs from time to time, each in a file of its own.

worker_watch         memory, silence, the server that we replace     statsd_gauges        workers, backlog, requests
drain_watch          the end of `drain_delay`                        collector_resolver   names of collectors
canary_watch         both generations of a reload with `canary`
certificate_refresh  TLS files and ticket keys                       admin_pages          /status and the page's load
memory_watch         memory of each process, for metrics
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from tricorn.arbiter.guard import Guard
from tricorn.arbiter.policy.events import Event, Tick
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.unpatched import select


class Periodic:
    """A job of the arbiter. `run` sets the next `due` before it does anything that may fail."""

    failure = "A periodic job failed"
    """The line of the log if `run` raises an exception: a sentence without its full stop."""
    descriptor: int = -1
    """Runs the job when it is readable."""

    def due(self, state: State, now: float) -> float:
        """Returns when to run next; NEVER if there is nothing to do."""
        raise NotImplementedError

    def run(self, state: State, now: float) -> Iterable[Event]:
        """Does what is due, and returns the events that the policy should decide on."""
        raise NotImplementedError


class Deadlines(Periodic):
    """Tells the policy when one of its deadlines has passed."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        """Seconds to wait at a time while there is a deadline."""

    def due(self, state: State, now: float) -> float:
        deadline = state.next_deadline()
        return deadline if deadline == NEVER else min(deadline, now + self._longest)

    def run(self, state: State, now: float) -> Iterable[Event]:
        return (Tick(),)


class Schedule:
    def __init__(self, jobs: Iterable[Periodic], guard: Guard) -> None:
        self._jobs = tuple(jobs)
        self._guard = guard

    def register(self, poll: select.poll, state: State, now: float) -> float:
        """Returns when the next job is due."""
        for job in self._jobs:
            if job.descriptor >= 0:
                poll.register(job.descriptor, select.POLLIN)
        return min(job.due(state, now) for job in self._jobs)

    def run(self, state: State, now: float, ready: Container[int] = ()) -> Iterator[Event]:
        for job in self._jobs:
            if job.descriptor in ready or now >= job.due(state, now):
                with self._guard(job.failure):
                    yield from job.run(state, now)
