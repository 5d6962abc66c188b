"""Workers that are not there yet."""

from __future__ import annotations

from signal import Signals

from tricorn.arbiter.policy import leaving, signals
from tricorn.arbiter.policy.commands import AskForStack, Command, Log, Notify, Send, ServiceState
from tricorn.arbiter.policy.exits import BACKOFF_FIRST
from tricorn.arbiter.policy.state import Backoff, Decision, State
from tricorn.arbiter.policy.worker import Booting, Leaving, Serving, Worker
from tricorn.record import replace
from tricorn.workers.messages import Ready


def ready(state: State, worker: Worker, message: Ready, now: float) -> Decision:
    """A worker serves. If others failed before it, they get another try, but not at once."""
    phase = replace(worker.phase, since=now) if isinstance(worker.phase, Leaving) else Serving(now)
    state = state.with_worker(replace(worker, phase=phase))
    commands: list[Command] = [Log("debug", f"{worker} is ready.")]
    if state.reopened >= worker.started:
        commands.append(Send(worker.nr, Signals.SIGUSR1))
    if worker.generation == state.generation:
        state = replace(state, stand_in=message.stand_in)
        state, sized = _size(state, message.kind)
        commands += sized
    if not state.proven:
        if state.failures:
            state = replace(state, backoff=Backoff(2, now, now + BACKOFF_FIRST))
        state = replace(state, proven=True)
        commands.append(Notify(ServiceState.READY))
    return state, commands


def _size(state: State, kind: str) -> Decision:
    """`workers = auto`: the first worker of a generation tells the class, if only the application does."""
    policy = state.policy
    if state.stand_in or policy.sizing is None or kind == policy.sizing.kind:
        return state, []
    sizing = policy.sizing.of(kind)
    is_as_configured = state.target == policy.workers and state.scaled is None
    state = replace(state, policy=replace(policy, sizing=sizing, workers=sizing.count))
    if not is_as_configured or sizing.count == policy.workers:
        return state, []
    state, commands = signals.resize(state, sizing.count)
    return state, [Log("info", sizing.sentence), *commands]


def failed(state: State, worker: Worker, reason: str) -> State:
    """Keeps the reason that a worker gives before it exits."""
    if not isinstance(worker.phase, Booting | Leaving):
        return state
    return state.with_worker(replace(worker, phase=replace(worker.phase, failure=reason)))


def told_where(state: State, worker: Worker, stack: tuple[str, ...]) -> State:
    """A part of the answer to AskForStack."""
    if not isinstance(worker.phase, Booting):
        return state
    return state.with_worker(replace(worker, phase=replace(worker.phase, stack=worker.phase.stack + stack)))


def overdue(state: State, worker: Worker, phase: Booting, now: float) -> Decision:
    """Asks a worker where it is that boots for longer than `boot_timeout`, and then kills it."""
    if phase.overdue is None:
        return state.with_worker(replace(worker, phase=replace(phase, overdue=now + ANSWER))), [AskForStack(worker.nr)]
    reason = f"it was not ready within {state.policy.boot_timeout:g} seconds (boot_timeout)"
    where = "\n  ".join((STACK, *phase.stack)) if phase.stack else "; where it was is not known."
    worker = replace(worker, phase=replace(phase, failure=reason))
    state, commands = leaving.leave(state, worker, Signals.SIGKILL, now)
    return state, [Log("critical", f"{worker} did not boot in time: {reason}{where}"), *commands]


ANSWER = 0.5
"""Seconds a worker has to say where it is."""

STACK = "; it was at (most recent call first):"
