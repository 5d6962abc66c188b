"""Generations: the new one has to serve before the old one is told to go.

    steady --HUP--> loading --Reloaded--> trial --all are ready--> steady, with the new generation
       ^               |                    |
       +--ReloadFailed-+                    +--one fails--> rolled back: steady, with the old generation

What is asked for meanwhile happens once, afterwards.
"""

from __future__ import annotations

from signal import Signals

from tricorn.arbiter.policy import leaving
from tricorn.arbiter.policy.commands import (
    Command,
    Commit,
    Log,
    Notify,
    Reload,
    Rollback,
    RunReloadHooks,
    ServiceState,
)
from tricorn.arbiter.policy.events import Prepared, Reloaded
from tricorn.arbiter.policy.state import Decision, State, Trial
from tricorn.arbiter.policy.worker import Leaving, Worker
from tricorn.record import replace


def hang_up(state: State) -> Decision:
    """HUP."""
    commands: list[Command] = [Log("info", "Hang up: Master")]
    if state.stopping is not None or state.drain_at is not None:
        return state, commands
    if state.is_reloading:
        return replace(state, reload_pending=True), commands
    return replace(state, loading=True), [*commands, Notify(ServiceState.RELOADING), Reload()]


def code_changed(state: State, worker: Worker, path: str) -> Decision:
    """Every worker watches; what the first one says is enough."""
    busy = state.is_reloading or state.drain_at is not None
    if worker.generation != state.generation or not worker.counts or busy:
        return state, []
    state = replace(state, loading=True)
    return state, [Log("info", f"Worker reloading: {path} modified"), Reload(configuration=False)]


def prepared(state: State, event: Prepared) -> Decision:
    """Calls the hooks with the number of workers wanted: an operator's outlives a reload that configures the same."""
    if not event.configuration:
        return reloaded(state, Reloaded(event.generation, event.policy, state.target))
    wanted = event.policy.workers
    if state.scaled is not None and event.policy.configures_as_many_as(state.policy):
        wanted = state.scaled
    return state, [RunReloadHooks(event.generation, event.policy, wanted)]


def reloaded(state: State, event: Reloaded) -> Decision:
    if state.stopping is not None:
        return replace(state, loading=False), []
    state = replace(
        state,
        loading=False,
        trial=Trial(state.generation, state.target, state.policy, state.scaled),
        generation=event.generation,
        target=_target(state, event),
        scaled=state.scaled if event.target == state.scaled else None,
        extra=0,
        policy=event.policy,
    )
    return state, []


def _target(state: State, event: Reloaded) -> int:
    """Finds the number anew if it is `auto`: new code may be of another class. One that was asked for stays."""
    unchanged = event.target == state.target == state.policy.workers and state.scaled is None
    return event.policy.workers if event.policy.sizing is not None and unchanged else event.target


def failed(state: State, reason: str) -> Decision:
    """Nothing was begun: the configuration cannot be used."""
    log = Log("error", f"Reload failed; nothing has changed: {reason}")
    return _steady(replace(state, loading=False), [log])


def roll_back(state: State, reason: str, now: float) -> Decision:
    """A worker of the generation on trial is lost."""
    trial = state.trial
    if trial is None:
        return state, []
    failing = [*state.of(state.generation), *filter(None, [state.mold_of(state.generation)])]
    log = Log("error", f"Reload failed; the old workers keep serving: {reason}")
    commands: list[Command] = [log, Rollback(state.generation, reason)]
    state = replace(state, generation=trial.previous, target=trial.target, policy=trial.policy, trial=None)
    state = replace(state, scaled=trial.scaled)
    for worker in failing:
        state, told = leaving.leave(state, worker.because("reload"), Signals.SIGTERM, now)
        commands += told
    return _steady(state, commands)


def finish_trial(state: State, now: float) -> Decision:
    """Tells the old generation to go once all workers of the new one serve."""
    trial = state.trial
    if trial is None or state.serving(state.generation) < state.target:
        return state, []
    commands: list[Command] = [Commit(state.generation)]
    state = replace(state, trial=None)
    for worker in list(state.processes.values()):
        if worker.generation != state.generation and not isinstance(worker.phase, Leaving):
            state, told = leaving.leave(state, worker.because("reload"), Signals.SIGTERM, now)
            commands += told
    return _steady(state, commands)


def _steady(state: State, commands: list[Command]) -> Decision:
    if state.reload_pending and state.stopping is None:
        return replace(state, reload_pending=False, loading=True), [*commands, Reload()]
    if state.stopping is None and state.proven:
        commands = [*commands, Notify(ServiceState.READY)]
    return state, commands
