"""Pages that the arbiter writes for the admin listener of the workers: the status, and the load."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tricorn.arbiter.parts import Parts
from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.policy.events import Event
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.unpatched import time

SECOND = 1_000_000_000

INTERVAL = 2.0
"""Seconds between two samples of the load; `INTERVAL` in the core's `scoreboard/history.rs`."""


class StatusSnapshot(Periodic):
    """Publishes the arbiter's status for `/status`, on change (`scoreboard/bulletin.rs`). Ages are told as moments."""

    failure = "The status cannot be written"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._published: tuple[object, ...] = ()
        """Values of the last text."""

    def due(self, state: State, now: float) -> float:
        generation = self._parts.generation
        if not (generation.admin and generation.config.admin_status):
            return NEVER
        sources = self._sources(state)
        is_same = len(self._published) == len(sources) and all(map(_is, sources, self._published))
        return NEVER if is_same else -NEVER

    def run(self, state: State, now: float) -> Iterable[Event]:
        """`now` is the policy's: it stands while the arbiter is stopped."""
        self._published = self._sources(state)
        ledger = self._parts.processes.ledger
        if not ledger.post(self._text(state, now)):
            ledger.post(self._text(state, now, with_workers=False))
        return ()

    def _sources(self, state: State) -> tuple[object, ...]:
        return state, self._parts.generation, self._parts.upgrade.parent

    def _text(self, state: State, now: float, *, with_workers: bool = True) -> bytes:
        from tricorn.arbiter.control import report

        moment = time.monotonic_ns()
        status = report.status(state, self._parts, now, brief=True)
        status["began"] = moment - round((now - self._parts.statistics.began) * SECOND)
        # Arguments of a factory may be secrets. The name is that of the application if there is no other.
        app = str(status["app"])
        status.update({name: app.partition("(")[0] for name in ("app", "name") if status[name] == app})
        del status["uptime"]
        rows = []
        for worker in state.workers.values() if with_workers else ():
            row = report.worker(worker, self._parts.processes.handles.get(worker.nr), now, brief=True)
            # The note may have the text of an exception.
            rows.append({name: value for name, value in row.items() if name not in ("age", "note")})
            rows[-1]["started"] = moment - round((now - worker.started) * SECOND)
        rows.sort(key=lambda row: (row["slot"] is None, row["slot"]))
        return json.dumps({"status": status, "workers": rows}).encode()


def _is(one: object, other: object) -> bool:
    return one is other


class LoadHistory(Periodic):
    """Samples what all workers do together, every other second, for the admin page (`scoreboard/history.rs`)."""

    failure = "The pages of workers cannot be read"

    def __init__(self, parts: Parts, now: float) -> None:
        self._parts = parts
        self._next = now

    def due(self, state: State, now: float) -> float:
        generation = self._parts.generation
        return self._next if generation.admin and generation.config.admin_page else NEVER

    def run(self, state: State, now: float) -> Iterable[Event]:
        self._next += INTERVAL
        if self._next <= now:  # samples that were missed are not made up for
            self._next = now + INTERVAL
        pages = self._parts.generation.pages
        if pages is not None:
            self._parts.processes.note(pages)
        return ()
