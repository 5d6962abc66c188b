"""Requests of a program's own arbiter: one more worker for a while, and that a certain one leaves."""

from __future__ import annotations

from signal import Signals

from tricorn.arbiter.policy import leaving
from tricorn.arbiter.policy.commands import Log
from tricorn.arbiter.policy.state import Decision, State
from tricorn.arbiter.policy.worker import Retiring, Serving, Worker
from tricorn.record import replace


def spawn(state: State) -> Decision:
    """One more than are wanted, until one is told to go."""
    if state.stopping is not None or state.trial is not None:
        return state, []
    if state.wanted_now >= state.policy.max_workers:
        return state, [Log("warning", f"Cannot run more than {state.policy.max_workers} workers.")]
    return replace(state, extra=state.extra + 1), []


def kill(state: State, worker: Worker, signal: Signals, now: float) -> Decision:
    """Tells a worker to go: by TERM when the others are as many as are wanted, by another signal at once."""
    if state.stopping is not None:
        return leaving.leave(state, worker, signal, now)
    worker = worker.because("asked")
    if worker.counts:
        state = replace(state, extra=max(0, state.extra - 1))
    if signal is not Signals.SIGTERM:
        return leaving.leave(state, worker, signal, now)
    match worker.phase:
        case Serving(since, _, silent):
            return state.with_worker(replace(worker, phase=Retiring(since, REASON, silent=silent))), []
        case Retiring():
            return state.with_worker(worker), []
    return leaving.leave(state, worker, signal, now)


REASON = "requested by the program"
