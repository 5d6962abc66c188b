"""Workers that are not there yet."""

from __future__ import annotations

from dataclasses import replace
from signal import Signals

from tricorn.arbiter.mind import leaving
from tricorn.arbiter.mind.commands import AskForStack, Command, Log, Notify, Phase, Send
from tricorn.arbiter.mind.endings import BACKOFF_FIRST
from tricorn.arbiter.mind.state import Backoff, Decision, State, Worker


def ready(state: State, worker: Worker, stand_in: bool, now: float) -> Decision:
    """A worker serves. If others failed before it, they get another try, but not at once."""
    state = state.with_worker(replace(worker, ready=now, overdue=None))
    commands: list[Command] = [Log("debug", f"{worker} is ready.")]
    if state.reopened >= worker.started:
        commands.append(Send(worker.nr, Signals.SIGUSR1))
    if worker.generation == state.generation:
        state = replace(state, stand_in=stand_in)
    if not state.proven:
        if state.failures:
            state = replace(state, backoff=Backoff(2, now, now + BACKOFF_FIRST))
        state = replace(state, proven=True)
        commands.append(Notify(Phase.READY))
    return state, commands


def overdue(state: State, now: float) -> Decision:
    """A worker that boots for longer than `boot_timeout` is asked where it is, and killed."""
    commands: list[Command] = []
    for worker in list(state.workers.values()):
        if worker.ready is not None or worker.leaving is not None or now < state.boot_deadline(worker):
            continue
        if worker.overdue is None:
            state = state.with_worker(replace(worker, overdue=now + ANSWER))
            commands.append(AskForStack(worker.nr))
            continue
        reason = f"it was not ready within {state.policy.boot_timeout:g} seconds (boot_timeout)"
        where = "\n  ".join((STACK, *worker.stack)) if worker.stack else "; where it was is not known."
        commands.append(Log("critical", f"{worker} does not boot: {reason}{where}"))
        state, told = leaving.leave(state, replace(worker, failure=reason), Signals.SIGKILL, now)
        commands += told
    return state, commands


ANSWER = 0.5
"""Seconds a worker has to say where it is."""

STACK = "; it was at (most recent call first):"
