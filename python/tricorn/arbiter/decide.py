"""The arbiter's mind: what to do about each event. Pure; no clock, no process, no log.

    starting --a worker is ready--> running --TERM, INT, QUIT--> stopping --no worker left--> exit
       |                                                             ^
       +--all workers failed to boot---------------------------------+  with the code of the first failure

A worker:

    booting --ready--> serving --told to leave--> leaving --exit--> gone
                                                  TERM, then QUIT after graceful_timeout, then KILL

Rule: no other file decides what comes next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from signal import Signals

from tricorn.arbiter.commands import CloseListeners, Command, Exit, Level, Log, ReopenLogs, Send, Spawn
from tricorn.arbiter.events import (
    ChildExited,
    Event,
    Signalled,
    Spawned,
    SpawnFailed,
    Start,
    Tick,
    WorkerBootFailed,
    WorkerReady,
)
from tricorn.arbiter.state import NEVER, Backoff, Failure, Leaving, State, Stopping, Worker
from tricorn.errors import ExitCode

Decision = tuple[State, list[Command]]


def decide(state: State, event: Event, now: float) -> Decision:
    match event:
        case Start() | Tick():
            decision = _escalate(state, now)
        case Signalled(signal):
            decision = _signalled(state, signal, now)
        case Spawned(nr, pid):
            decision = state.with_worker(replace(state.workers[nr], pid=pid)), []
        case SpawnFailed(nr, reason):
            log = Log("error", f"A worker could not be started: {reason}.")
            decision = _lost(state.without(nr), state.workers[nr], Failure(ExitCode.WORKER_BOOT, reason), now, log)
        case WorkerReady(nr) if nr in state.workers:
            worker = replace(state.workers[nr], ready=now)
            decision = _prove(state.with_worker(worker), now), [Log("debug", f"{worker} is ready.")]
        case WorkerBootFailed(nr, _, reason) if nr in state.workers:
            decision = state.with_worker(replace(state.workers[nr], failure=reason)), []
        case ChildExited(nr, status) if nr in state.workers:
            decision = _exited(state.without(nr), state.workers[nr], status, now)
        case _:
            decision = state, []  # news of a worker that is already gone
    return _settle(*decision, now)


def _settle(state: State, commands: list[Command], now: float) -> Decision:
    """After every event: too few workers, too many, or none left to wait for."""
    if state.stopping is not None:
        return (state, commands) if state.workers else (state, commands + _farewell(state.stopping))
    while state.missing() > 0 and now >= state.backoff.until:
        worker = Worker(state.next_nr, state.generation, started=now)
        state = replace(state.with_worker(worker), next_nr=worker.nr + 1)
        commands.append(Spawn(worker.nr, worker.generation, siblings=state.target > 1))
    for worker in state.staying()[: max(0, -state.missing())]:
        state, told = _leave(state, worker, Signals.SIGTERM, now)
        commands += told
    return state, commands


def _farewell(stopping: Stopping) -> list[Command]:
    if stopping.failure is None:
        return [Log("info", "Shutting down: Master"), Exit(stopping.code)]
    return [
        Log("error", "Shutting down: Master"),
        Log("error", f"Reason: {stopping.failure}"),
        Exit(stopping.code),
    ]


# Signals


def _signalled(state: State, signal: Signals, now: float) -> Decision:
    name = signal.name.removeprefix("SIG").lower()
    log: Command = Log("debug" if signal is Signals.SIGCHLD else "info", f"Handling signal: {name}")
    handler = _HANDLERS.get(signal)
    if handler is None:
        return state, [log]
    state, commands = handler(state, now)
    return state, [log, *commands]


def _on_term(state: State, now: float) -> Decision:
    return _stop(state, now, Stopping(ExitCode.OK, failure=None, quick=False))


def _on_int(state: State, now: float) -> Decision:
    return _stop(state, now, Stopping(ExitCode.OK, failure=None, quick=True))


def _on_ttin(state: State, now: float) -> Decision:
    if state.target >= state.most:
        return state, [Log("warning", f"There are {state.most} workers, and there cannot be more.")]
    return replace(state, target=state.target + 1), []


def _on_ttou(state: State, now: float) -> Decision:
    return replace(state, target=max(1, state.target - 1)), []


def _on_usr1(state: State, now: float) -> Decision:
    # A worker that boots has no handler yet, and the signal would kill it. It opens its files later anyway.
    ready = [worker.nr for worker in state.workers.values() if worker.ready is not None]
    return state, [ReopenLogs(), *(Send(nr, Signals.SIGUSR1) for nr in ready)]


def _not_yet(text: str) -> Callable[[State, float], Decision]:
    return lambda state, now: (state, [Log("warning", text)])


_HANDLERS: dict[Signals, Callable[[State, float], Decision]] = {
    Signals.SIGTERM: _on_term,
    Signals.SIGINT: _on_int,
    Signals.SIGQUIT: _on_int,
    Signals.SIGTTIN: _on_ttin,
    Signals.SIGTTOU: _on_ttou,
    Signals.SIGUSR1: _on_usr1,
    Signals.SIGHUP: _not_yet("Reload is not available in this version: restart tricorn to load new code."),
    Signals.SIGUSR2: _not_yet("Upgrade is not available in this version: restart tricorn."),
}


# Stopping


def _stop(state: State, now: float, stopping: Stopping) -> Decision:
    """Tells all workers to leave. A quick stop may follow a graceful one; asked for twice it kills."""
    before = state.stopping
    if before is not None and not stopping.quick:
        return state, []  # already leaving gracefully, or faster
    commands: list[Command] = []
    signal = Signals.SIGQUIT if stopping.quick else Signals.SIGTERM
    if before is None:
        commands.append(CloseListeners())
    elif before.quick:
        signal = Signals.SIGKILL
        stopping = before
    else:
        commands.append(Log("info", "Quick shutdown requested"))
        stopping = replace(before, quick=True)
    state = replace(state, stopping=stopping)
    for worker in list(state.workers.values()):
        state, told = _leave(state, worker, signal, now)
        commands += told
    return state, commands


def _leave(state: State, worker: Worker, signal: Signals, now: float) -> Decision:
    patience = {Signals.SIGTERM: state.graceful_timeout, Signals.SIGQUIT: QUIT_PATIENCE}.get(signal, NEVER)
    leaving = Leaving(signal, now + patience)
    return state.with_worker(replace(worker, leaving=leaving)), [Send(worker.nr, signal)]


def _escalate(state: State, now: float) -> Decision:
    """Workers whose time to leave is over are told more clearly."""
    commands: list[Command] = []
    for worker in list(state.workers.values()):
        if worker.leaving is None or now < worker.leaving.deadline:
            continue
        if worker.leaving.told is Signals.SIGTERM:
            text = f"{worker} did not finish its requests in {state.graceful_timeout:g} seconds."
            commands.append(Log("warning", text))
            state, told = _leave(state, worker, Signals.SIGQUIT, now)
        else:
            state, told = _leave(state, worker, Signals.SIGKILL, now)
        commands += told
    return state, commands


# Workers that end


def _exited(state: State, worker: Worker, status: int, now: float) -> Decision:
    log = _obituary(worker, status)
    if worker.leaving is not None or state.stopping is not None:
        return state, [log]
    failed = status if status in (ExitCode.WORKER_BOOT, ExitCode.APP_LOAD) else ExitCode.WORKER_BOOT
    reason = worker.failure
    if reason is None and status < 0:
        reason = f"killed by {_signal_name(-status)} while it booted"
    return _lost(state, worker, Failure(failed, reason), now, log)


def _lost(state: State, worker: Worker, failure: Failure, now: float, log: Log) -> Decision:
    """A worker is missing: it is replaced, with restraint, or all is given up if none was ever ready."""
    if not state.proven:
        state = replace(state, failures=(*state.failures, failure))
        if state.workers:
            return state, [log]  # others may still make it
        first = state.failures[0]
        state, commands = _stop(state, now, Stopping(first.code, _reason(first), quick=True))
        return state, [log, *commands]
    backoff = _restrain(state.backoff, worker, now)
    commands = [log]
    if backoff.until > now and backoff != state.backoff:
        text = f"Workers die soon after their start: the next one starts in {backoff.until - now:g} seconds."
        commands.append(Log("warning", text))
    return replace(state, backoff=backoff), commands


def _reason(failure: Failure) -> str:
    text = "App failed to load." if failure.code == ExitCode.APP_LOAD else "Worker failed to boot."
    return f"{text} ({failure.reason})" if failure.reason else text


def _prove(state: State, now: float) -> State:
    """A worker is ready. If others failed before it, they get another try, but not at once."""
    if state.proven or not state.failures:
        return replace(state, proven=True)
    return replace(state, proven=True, backoff=Backoff(2, now, now + BACKOFF_FIRST))


def _restrain(backoff: Backoff, worker: Worker, now: float) -> Backoff:
    """One early death is an accident and is replaced at once; each that follows doubles the wait."""
    if worker.ready is not None and now - worker.ready >= STEADY:
        return backoff
    if worker.started < backoff.last:
        return backoff  # of the same round: whatever killed its sibling killed it
    streak = 1 if now - backoff.last > FORGET else backoff.streak + 1
    delay = 0.0 if streak == 1 else min(BACKOFF_MOST, BACKOFF_FIRST * 2.0 ** min(streak - 2, 16))
    return Backoff(streak, now, now + delay)


def _obituary(worker: Worker, status: int) -> Log:
    """gunicorn's words, which log scrapers know; but one we killed did not run out of memory."""
    if status >= 0:
        return Log("error" if status else "debug", f"{worker} exited with code {status}.")
    name = _signal_name(-status)
    if name == "SIGKILL":
        if worker.leaving is not None and worker.leaving.told is Signals.SIGKILL:
            return Log("warning", f"{worker} was sent SIGKILL: it did not leave in time.")
        return Log("error", f"{worker} was sent SIGKILL! Perhaps out of memory?")
    expected = name == "SIGTERM" or worker.leaving is not None
    level: Level = "info" if expected else "warning"
    return Log(level, f"{worker} was sent {name}!")


def _signal_name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


QUIT_PATIENCE = 2.0
"""Seconds between QUIT and KILL; gunicorn's quick shutdown gives as much."""

STEADY = 10.0
"""A worker that served so long did not die of its start."""

FORGET = 60.0
"""After so long without an early death the next one is an accident again."""

BACKOFF_FIRST = 0.5
BACKOFF_MOST = 30.0
