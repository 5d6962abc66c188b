"""One event at a time; see the package for the map."""

from __future__ import annotations

from signal import Signals

from tricorn.arbiter.policy import (
    booting,
    control_requests,
    exits,
    leaving,
    log_once,
    molding,
    program_requests,
    reforking,
    reloading,
    retiring,
    signals,
)
from tricorn.arbiter.policy.commands import Command, Exit, Log, LogReady, Order, Send, Spawn
from tricorn.arbiter.policy.events import (
    CanarySeen,
    ChildExited,
    Event,
    KillRequested,
    Prepared,
    Quiet,
    Reloaded,
    ReloadFailed,
    Requested,
    Resized,
    Signalled,
    Spawned,
    SpawnFailed,
    SpawnRequested,
    Start,
    Tick,
    Told,
    Upgraded,
    Weighed,
    WorkerSeen,
)
from tricorn.arbiter.policy.state import Decision, State, Stopping
from tricorn.arbiter.policy.worker import Booting, Leaving, Retiring, Serving, Worker
from tricorn.record import replace
from tricorn.workers.messages import (
    BootFailed,
    Changed,
    IsMold,
    Libraries,
    Message,
    NoMold,
    Notice,
    Parted,
    Ready,
    Retire,
    StackLines,
    Stuck,
)
from tricorn.workers.stall import Stall


def decide(state: State, event: Event, now: float) -> Decision:  # noqa: C901  # one case for each event
    match event:
        case Start() | Tick():
            decision = _on_time(state, now)
        case Signalled(signal):
            decision = signals.signalled(state, signal, now)
        case Resized(target):
            decision = signals.scale(state, target)
        case SpawnRequested():
            decision = program_requests.spawn(state)
        case KillRequested(pid, sent):
            found = next((worker for worker in state.workers.values() if worker.pid == pid), None)
            decision = (state, []) if found is None else program_requests.kill(state, found, sent, now)
        case Prepared():
            decision = reloading.prepared(state, event)
        case Reloaded():
            decision = reloading.reloaded(state, event)
        case CanarySeen():
            decision = reloading.seen(state, event, now)
        case ReloadFailed(reason):
            decision = reloading.failed(state, reason)
        case Upgraded(pid):
            decision = replace(state, successor=pid), []
        case Requested(ticket, request):
            decision = control_requests.requested(state, ticket, request, now)
        case Quiet(seconds):
            decision = leaving.quiet(state, seconds, now)
        case Weighed():
            decision = reforking.weighed(state, event)
        case _ if event.nr in state.molds:
            decision = molding.decide(state, state.molds[event.nr], event, now)
        case _ if event.nr in state.workers:
            decision = _of_worker(state, state.workers[event.nr], event, now)
        case _:
            decision = state, []  # news of a worker that is already gone
    return _reconcile(*decision, now)


def _of_worker(state: State, worker: Worker, event: Event, now: float) -> Decision:
    match event:
        case Spawned(_, pid, jitter):
            orders: list[Command] = [Order((worker.nr,), not_ready=True)] if state.is_unready else []
            if isinstance(worker.phase, Leaving):  # it was told before it had a pid
                orders.append(Send(worker.nr, worker.phase.sent_signal))
            state = molding.has_forked(state, worker)
            return state.with_worker(replace(worker, pid=pid, jitter=jitter)), orders
        case SpawnFailed(_, reason):
            if worker.mold is not None:
                return molding.not_forked(state, worker, reason, now)
            return exits.not_started(state, worker, reason, now)
        case Told(_, message):
            return _told(state, worker, message, now)
        case WorkerSeen():
            state, commands = retiring.seen(state, worker, event, now)
            return reforking.seen(state, event), commands
        case ChildExited(_, status, serving):
            return exits.exited(state, worker, status, serving, now)
    return state, []


def _told(state: State, worker: Worker, message: Message, now: float) -> Decision:
    match message:
        case Ready():
            return booting.ready(state, worker, message, now)
        case BootFailed(_, reason):
            return booting.failed(state, worker, reason), []
        case StackLines(lines):
            return booting.told_where(state, worker, lines), []
        case Retire(reason):
            return retiring.retires(state, worker, reason)
        case Stuck():
            return retiring.stuck(state, worker, message)
        case IsMold():
            return reforking.became(state, worker, now)
        case NoMold(reason):
            return reforking.failed(state, worker, reason)
        case Parted():
            return state.with_worker(replace(worker, parted=True)), []
        case Changed(path):
            return reloading.code_changed(state, worker, path)
        case Notice():
            return log_once.log_once(state, worker, message, now)
        case Stall() | Libraries():
            return state, []  # the loop and the handle keep them; they decide nothing


def _on_time(state: State, now: float) -> Decision:
    """Decides what is due."""
    commands: list[Command] = []
    for worker in list(state.processes.values()):
        if now >= state.deadline_of(worker):
            state, more = _deadline(state, worker, now)
            commands += more
    state, more = leaving.end_drain_delay(state, now)
    return state, [*commands, *more]


def _deadline(state: State, worker: Worker, now: float) -> Decision:
    """Decides about a worker whose time in its phase is over."""
    match worker.phase:
        case Booting() if worker.mold is not None and worker.pid is None:
            return molding.hangs(state, worker, now)
        case Booting() as phase:
            return booting.overdue(state, worker, phase, now)
        case Serving(since):
            reason = f"it has served for {now - since:.0f} seconds"
            return retiring.ask_to_retire(state, worker, reason, "lifetime"), []
        case Leaving() as phase:
            return leaving.escalate(state, worker, phase, now)
        case Retiring():
            return state, []  # it has none


def _reconcile(state: State, commands: list[Command], now: float) -> Decision:
    """Brings the workers there are to the number wanted, after every event."""
    if state.stopping is not None:
        return (state, commands) if state.processes else _finish(state, state.stopping, commands)
    state, more = reloading.advance_trial(state, now)
    commands += more
    state = retiring.admit_retirements(state)
    for generation, target in state.wanted():
        state, more = molding.provide(state, generation, target, now)
        commands += more
        is_possible = now >= state.backoff.until and state.can_fork(generation)
        while is_possible and state.missing(generation, target) > 0:
            mold = state.mold_of(generation)
            worker = Worker(state.next_nr, generation, started=now, mold=None if mold is None else mold.nr)
            state = replace(state.with_worker(worker), next_nr=worker.nr + 1)
            proven, stands_in = state.is_proven(generation), state.policy.reload
            commands.append(Spawn(worker.nr, generation, target > 1, proven, stands_in, worker.mold))
        for worker in state.surplus(generation, target):
            state, told = leaving.leave(state, worker.because("scale"), Signals.SIGTERM, now)
            commands += told
    state, more = retiring.stop_replaced(state, now)
    commands += more
    is_new = state.complete != state.generation and state.trial is None and not state.stand_in
    serves = 0 < state.target <= state.serving(state.generation)
    if is_new and serves and not state.serves_old_code():
        return replace(state, complete=state.generation), [*commands, LogReady(state.target)]
    return state, commands


def _finish(state: State, stopping: Stopping, commands: list[Command]) -> Decision:
    if stopping.failure is None:
        return state, [*commands, Log("info", "Shutting down: Master"), Exit(stopping.code)]
    reason = Log("error", f"Reason: {stopping.failure}")
    return state, [*commands, Log("error", "Shutting down: Master"), reason, Exit(stopping.code)]
