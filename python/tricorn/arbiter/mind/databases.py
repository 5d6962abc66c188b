"""When a database takes no more connections: one line for a burst of refusals, with the arithmetic behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tricorn.arbiter.mind.commands import Command, Log
from tricorn.arbiter.mind.events import WorkerRefused
from tricorn.arbiter.mind.state import NEVER, Refusals, State, end_of_burst

Decision = tuple[State, list[Command]]


def refused(state: State, event: WorkerRefused, now: float) -> Decision:
    """Counts; the line is written when the burst is over."""
    before = state.refusals.get(event.address) or Refusals(event.text, 0, 0, now, now)
    refusals = replace(before, count=before.count + 1, held=max(before.held, event.held), last=now)
    return _with(state, {**state.refusals, event.address: refusals}), []


def tell(state: State, now: float = NEVER) -> Decision:
    """One line for each burst that is over by `now`."""
    over = {address: some for address, some in state.refusals.items() if now >= end_of_burst(some)}
    if not over:
        return state, []
    left = {address: some for address, some in state.refusals.items() if address not in over}
    return _with(state, left), [Log("error", _line(state, address, some)) for address, some in over.items()]


def _with(state: State, refusals: Mapping[str, Refusals]) -> State:
    return replace(state, refusals=MappingProxyType(dict(refusals)))


def _line(state: State, address: str, refusals: Refusals) -> str:
    workers, each = state.target, state.policy.at_once
    connections = "connection" if refusals.count == 1 else "connections"
    return (
        f"The database at {address} refused {refusals.count} {connections}: {refusals.text}. "
        f"This server held {refusals.held}. {workers} x {each} requests (workers x worker_connections) may ask for "
        f"{workers * each} connections at once; PostgreSQL allows 100 in all if max_connections is not set, "
        "97 of them for ordinary users. Share connections in a pool, lower workers or worker_connections, raise "
        "max_connections, or put PgBouncer before the database."
    )
