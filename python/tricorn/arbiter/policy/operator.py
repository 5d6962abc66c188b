"""What an operator asks for over the control socket: done as by a signal, and answered."""

from __future__ import annotations

from signal import Signals

from tricorn.arbiter.policy import leaving, pending, reloading, signals
from tricorn.arbiter.policy.commands import (
    Answer,
    ChangeLogLevel,
    Command,
    Kind,
    Level,
    Log,
    Order,
    Refuse,
    TellLogLevel,
)
from tricorn.arbiter.policy.state import Decision, LevelAsked, State
from tricorn.arbiter.policy.wishes import (
    Cancel,
    Drain,
    Kill,
    Profile,
    ReloadAll,
    Reopen,
    Replace,
    Scale,
    SetLogLevel,
    Shutdown,
    Stacks,
    Welcome,
    Wish,
)
from tricorn.arbiter.policy.worker import Leaving, Retiring, Serving, Worker
from tricorn.record import replace


def asked(state: State, ticket: int, wish: Wish, now: float) -> Decision:  # one line for each wish
    if state.stopping is not None and not isinstance(wish, WHILE_IT_ENDS):
        return _refuse(state, ticket, "The server is about to end.")
    match wish:
        case ReloadAll(wait):
            return _reload(state, ticket, wait)
        case Scale():
            return _scale(state, ticket, wish)
        case Drain(nr, wait):
            return _drain(state, ticket, nr, wait)
        case Kill(nr):
            return _kill(state, ticket, nr, now)
        case Stacks(nrs):
            return _stacks(state, ticket, nrs, now)
        case Profile():
            return _profile(state, ticket, wish, now)
        case Cancel():
            return pending.wait_for_cancel(state, ticket, wish, now)
        case Welcome(on):
            return _welcome(state, ticket, on)
        case SetLogLevel(level):
            return _log_level(state, ticket, level)
        case _:
            return _by_signal(state, ticket, wish, now)


def _by_signal(state: State, ticket: int, wish: Reopen | Replace | Shutdown, now: float) -> Decision:
    """What a signal asks for, too."""
    match wish:
        case Reopen():
            return _done(*signals.reopen(state, now), ticket, "reopening")
        case Replace() if state.successor is not None:
            return _refuse(state, ticket, f"There is a successor already (pid {state.successor}).")
        case Replace():
            return _done(*signals.upgrade(state), ticket, "upgrading")
        case Shutdown(quick):
            return _done(*signals.end(state, now, quick=quick), ticket, "shutting_down")


def _refuse(state: State, ticket: int, sentence: str, kind: Kind = "refused") -> Decision:
    return state, [Refuse(ticket, kind, sentence)]


def _done(state: State, commands: list[Command], ticket: int, status: str) -> Decision:
    return state, [Answer(ticket, {"status": status}), *commands]


def _reload(state: State, ticket: int, wait: bool) -> Decision:
    if state.drain_at is not None:
        return _refuse(state, ticket, "The server is about to end.")
    later = state.loading or state.trial is not None
    state, commands = reloading.hang_up(state)
    if wait:
        return pending.wait_for_reload(state, ticket, later=later), commands
    return state, [*commands, Answer(ticket, {"status": "reloading"})]


def _scale(state: State, ticket: int, wish: Scale) -> Decision:
    before = state.target
    if wish.target is None and wish.by is None:
        target = state.policy.workers
    elif wish.target is not None:
        target = wish.target
    else:
        target = before + (wish.by or 0)
    if not 1 <= target <= state.policy.most:
        return _refuse(state, ticket, f"There can be 1 to {state.policy.most} workers, not {target}.")
    state, commands = signals.resize(state, target)
    state = replace(state, scaled=None if wish == Scale() else target)
    return state, [*commands, Answer(ticket, {"previous": before, "workers": target})]


def _drain(state: State, ticket: int, nr: int, wait: bool) -> Decision:
    worker = state.workers.get(nr)
    if worker is None:
        return _refuse(state, ticket, "There is no such worker any more.")
    if state.trial is not None or state.drain_at is not None:
        return _refuse(state, ticket, "All workers are about to be replaced.", "busy")
    match worker.phase:
        case Serving(since, _, silent):
            phase = Retiring(since, REASON, silent=silent)
            state = state.with_worker(replace(worker, phase=phase).because("asked"))
        case Retiring() | Leaving():
            pass  # it goes already
        case _:
            return _refuse(state, ticket, "It boots, and has nothing to finish; `worker kill` ends it.")
    if wait:
        return pending.wait_for_end(state, ticket, nr), []
    return state, [Answer(ticket, {"status": "draining", "pid": worker.pid})]


def _kill(state: State, ticket: int, nr: int, now: float) -> Decision:
    worker = state.workers.get(nr)
    if worker is None:
        return _refuse(state, ticket, "There is no such worker any more.")
    state, commands = leaving.leave(state, worker.because("asked"), Signals.SIGTERM, now)
    return state, [*commands, Answer(ticket, {"killed": worker.pid})]


def _stacks(state: State, ticket: int, nrs: tuple[int, ...], now: float) -> Decision:
    """Only of workers that serve: before, the signal may have no handler yet, and would end the process."""
    ready = tuple(nr for nr in nrs if nr in state.workers and state.workers[nr].served_since is not None)
    if not ready:
        return _refuse(state, ticket, "No such worker serves yet.")
    return pending.wait_for_stacks(state, ticket, ready, now)


def _profile(state: State, ticket: int, wish: Profile, now: float) -> Decision:
    """Only of workers that serve: before, there is no sampler."""
    ready = tuple(nr for nr in wish.nrs if nr in state.workers and state.workers[nr].served_since is not None)
    if not ready:
        return _refuse(state, ticket, "No such worker serves yet.")
    return pending.wait_for_profile(state, ticket, wish, ready, now)


def _log_level(state: State, ticket: int, level: Level) -> Decision:
    """Those that boot are told when they serve: before, the signal may have no handler."""
    state = replace(state, log_level=LevelAsked(level, state.generation))
    nrs = tuple(nr for nr, worker in state.workers.items() if worker.served_since is not None)
    told = [TellLogLevel(nrs, level)] if nrs else []
    return state, [ChangeLogLevel(level), *told, Answer(ticket, {"level": level, "workers": len(nrs)})]


def _welcome(state: State, ticket: int, on: bool) -> Decision:
    state = replace(state, unready=not on)
    nrs = tuple(worker.nr for worker in state.workers.values() if not isinstance(worker.phase, Leaving))
    text = "Readiness is told as it is again." if on else "Readiness is denied until `ready on`; requests are served."
    denied = state.unready or state.drain_at is not None
    # Those that leave answer for the server until they have gone; what they were ordered besides stays.
    leave = [leaving.order(state, each) for each in state.workers.values() if _has_term(each)]
    return state, [Log("info", text), Order(nrs, not_ready=denied), *leave, Answer(ticket, {"ready": not denied})]


def _has_term(worker: Worker) -> bool:
    return isinstance(worker.phase, Leaving) and worker.phase.sent_signal is Signals.SIGTERM


WHILE_IT_ENDS = (Shutdown, Kill, Stacks, Profile, Cancel, Reopen, SetLogLevel)
"""What may be asked of a server that is about to end."""

REASON = "an operator has asked for it"
