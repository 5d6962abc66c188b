"""Generations: the new one has to serve before the old one is told to go.

    steady --HUP--> loading --Reloaded--> trial --all are ready--> steady, with the new generation
       ^               |                    |
       +--ReloadFailed-+                    +--one fails--> rolled back: steady, with the old generation

With `canary` a trial begins with a few workers, beside all of the old generation:

    canaries boot --all of them serve--> watch --good--> the others boot --all are ready--> steady
          |                                |                   |
          +--one fails---------------------+--bad--------------+--one fails--> rolled back

What is asked for meanwhile happens once, afterwards.
"""

from __future__ import annotations

from signal import Signals

from tricorn.arbiter.policy import canary, leaving
from tricorn.arbiter.policy.canary import Look, Plan, Watch
from tricorn.arbiter.policy.commands import (
    Command,
    Commit,
    Log,
    Notify,
    Order,
    Reload,
    Rollback,
    RunReloadHooks,
    ServiceState,
)
from tricorn.arbiter.policy.events import CanarySeen, Prepared, Reloaded
from tricorn.arbiter.policy.state import Decision, State, Trial
from tricorn.arbiter.policy.worker import Leaving, Retiring, Serving, Worker
from tricorn.record import replace


def hang_up(state: State, plan: Plan | None = None) -> Decision:
    """HUP. `plan`: the canary to begin with, in place of the configured one."""
    commands: list[Command] = [Log("info", "Hang up: Master")]
    if state.stopping is not None or state.drain_at is not None:
        return state, commands
    if state.is_reloading:
        return replace(state, reload_pending=True, next_canary=plan or state.next_canary), commands
    return replace(state, loading=True, canary=plan), [*commands, Notify(ServiceState.RELOADING), Reload()]


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
        return _begin(state, Reloaded(event.generation, event.policy, state.target), watch=None)
    wanted = event.policy.workers
    if state.scaled is not None and event.policy.configures_as_many_as(state.policy):
        wanted = state.scaled
    return state, [RunReloadHooks(event.generation, event.policy, wanted)]


def reloaded(state: State, event: Reloaded) -> Decision:
    plan = state.canary or event.policy.plan
    workers = plan.of(_target(state, event))
    # Without old workers that serve there is nothing to compare with, and nothing to lose.
    can_compare = state.serving(state.generation) > 0 and not state.stand_in
    return _begin(state, event, Watch(plan, workers) if workers > 0 and can_compare else None)


def _begin(state: State, event: Reloaded, watch: Watch | None) -> Decision:
    if state.stopping is not None:
        return replace(state, loading=False), []
    state = replace(
        state,
        loading=False,
        canary=None,
        trial=Trial(state.generation, state.target, state.policy, state.scaled, watch),
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
    failing = [
        each
        for each in state.processes.values()
        if each.generation == state.generation and not isinstance(each.phase, Leaving)
    ]
    log = Log("error", f"Reload failed; the old workers keep serving: {reason}")
    commands: list[Command] = [log, Rollback(state.generation, reason)]
    state = replace(state, generation=trial.previous, target=trial.target, policy=trial.policy, trial=None)
    state = replace(state, scaled=trial.scaled)
    if trial.watch is not None:
        commands.append(_share(state, reconnect=False))
    for worker in failing:
        state, told = leaving.leave(state, worker.because("reload"), Signals.SIGTERM, now)
        commands += told
    return _steady(state, commands)


def advance_trial(state: State, now: float) -> Decision:
    """Begins the watch once all canaries serve, and tells the old generation to go once all of the new one serve."""
    trial = state.trial
    if trial is None:
        return state, []
    if trial.watch is not None:
        return _watch(state, trial, trial.watch, now)
    if state.serving(state.generation) < state.target:
        return state, []
    commands: list[Command] = [Commit(state.generation)]
    state = replace(state, trial=None)
    for worker in list(state.processes.values()):
        if worker.generation != state.generation and not isinstance(worker.phase, Leaving):
            state, told = leaving.leave(state, worker.because("reload"), Signals.SIGTERM, now)
            commands += told
    return _steady(state, commands)


def _watch(state: State, trial: Trial, watch: Watch, now: float) -> Decision:
    if any(worker.stuck for worker in state.workers.values() if worker.generation == state.generation):
        return roll_back(state, "a request of a new worker exceeded timeout", now)
    if state.target == 0:  # WINCH
        return advance_trial(replace(state, trial=replace(trial, watch=None)), now)
    if watch.since is not None or state.serving(state.generation) < min(watch.workers, state.target):
        return state, []
    count, seconds = f"{watch.workers} of {state.target}", watch.plan.seconds
    log = Log("info", f"Canary: comparing {count} new workers with the old ones for {seconds:g} seconds.")
    state = replace(state, trial=replace(trial, watch=replace(watch, since=now)))
    # Connections that are kept open lead to old workers only: pools of a load balancer would never meet a canary.
    return state, [log, _share(state, reconnect=True)]


def _share(state: State, *, reconnect: bool) -> Order:
    """Has clients connect anew, of both generations, until it is taken back: a second is enough for busy ones."""
    serving = [worker.nr for worker in state.workers.values() if isinstance(worker.phase, Serving | Retiring)]
    return Order(tuple(serving), not_ready=state.is_unready, reconnect=reconnect)


def seen(state: State, event: CanarySeen, now: float) -> Decision:
    """Decides on a look at both generations."""
    trial, watch = state.trial, state.watch
    if trial is None or watch is None or watch.since is None or state.drain_at is not None:
        return state, []
    if event.generation != state.generation:
        return state, []
    look = event.look
    reason = canary.judge(look, watch.plan) if event.opinion is None else None
    if event.opinion is False:
        reason = "the hook canary_judge returned False"
    if reason is not None:
        return roll_back(state, reason, now)
    if event.opinion or watch.is_over(now):
        log = _passed(look, watch.plan, by_hook=event.opinion is True)
        return replace(state, trial=replace(trial, watch=None)), [log, _share(state, reconnect=False)]
    commands: list[Command] = [] if watch.look is not None else [_share(state, reconnect=False)]
    if not watch.warned and canary.is_shorter(look):
        text = "Canary: the responses of the new workers are less than half as long as those of the old ones."
        commands.append(Log("warning", text))
        watch = replace(watch, warned=True)
    watch = replace(watch, look=look)
    return replace(state, trial=replace(trial, watch=watch)), commands


def _passed(look: Look, plan: Plan, *, by_hook: bool) -> Log:
    if by_hook:
        return Log("info", "Canary: the hook canary_judge returned True; starting the other new workers.")
    if look.new.requests < plan.requests:
        few, wanted = look.new.requests, f"canary_requests = {plan.requests}"
        return Log("warning", f"Canary: judged by {few} requests only ({wanted}); starting the other new workers.")
    return Log("info", f"Canary: no difference found: {canary.described(look)}; starting the other new workers.")


def _steady(state: State, commands: list[Command]) -> Decision:
    if state.reload_pending and state.stopping is None:
        state = replace(state, reload_pending=False, loading=True, canary=state.next_canary, next_canary=None)
        return state, [*commands, Reload()]
    if state.stopping is None and state.proven:
        commands = [*commands, Notify(ServiceState.READY)]
    return state, commands
