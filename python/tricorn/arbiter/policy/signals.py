"""Decides what each signal means; gunicorn's meanings."""

from __future__ import annotations

from collections.abc import Callable
from signal import Signals

from tricorn.arbiter.policy import leaving, reloading
from tricorn.arbiter.policy.commands import Command, Log, ReopenLogs, Send, StartSuccessor, WorkersChanged
from tricorn.arbiter.policy.state import Decision, State, Stopping
from tricorn.errors import ExitCode
from tricorn.record import replace


def signalled(state: State, signal: Signals, now: float) -> Decision:
    name = signal.name.removeprefix("SIG").lower()
    log: Command = Log("debug" if signal is Signals.SIGCHLD else "info", f"Handling signal: {name}")
    handler = _HANDLERS.get(signal)
    if handler is None:
        return state, [log]
    state, commands = handler(state, now)
    return state, [log, *commands]


def _on_term(state: State, now: float) -> Decision:
    patient = state.policy.drain_delay > 0 and state.proven
    if state.stopping is None and state.drain_at is None and patient:
        return leaving.start_drain_delay(state, now)
    return leaving.stop(state, now, Stopping(ExitCode.OK, failure=None, quick=False))


def end(state: State, now: float, *, quick: bool) -> Decision:
    """Ends the server, as TERM or INT does."""
    return _on_int(state, now) if quick else _on_term(state, now)


def _on_int(state: State, now: float) -> Decision:
    return leaving.stop(state, now, Stopping(ExitCode.OK, failure=None, quick=True))


def _on_hup(state: State, now: float) -> Decision:
    return reloading.hang_up(state)


def _on_ttin(state: State, now: float) -> Decision:
    return scale(state, state.target + 1)


def _on_ttou(state: State, now: float) -> Decision:
    return scale(state, max(1, state.target - 1))


def resize(state: State, target: int) -> Decision:
    commands: list[Command] = []
    if target > state.policy.max_workers:
        target = state.policy.max_workers
        commands.append(Log("warning", f"Cannot run more than {target} workers."))
    if target == state.target:
        return state, commands
    return replace(state, target=target), [*commands, WorkersChanged(target, state.target)]


def scale(state: State, target: int) -> Decision:
    """Sets the number that is asked for. While canaries are watched it is not known which generation stays."""
    state, commands = resize(state, target)
    trial = state.trial
    if trial is not None and trial.watch is not None:
        trial = replace(trial, target=min(state.target, trial.policy.max_workers))
    return replace(state, trial=trial), commands


def _on_usr1(state: State, now: float) -> Decision:
    return reopen(state, now)


def reopen(state: State, now: float) -> Decision:
    # A worker that boots has no handler yet, and the signal would kill it: it is told when it is ready.
    ready = [worker.nr for worker in state.processes.values() if worker.served_since is not None]
    return replace(state, reopened=now), [ReopenLogs(), *(Send(nr, Signals.SIGUSR1) for nr in ready)]


def _on_usr2(state: State, now: float) -> Decision:
    if state.successor is not None:
        return state, [Log("warning", "USR2 signal ignored. Child exists.")]
    return upgrade(state)


def upgrade(state: State) -> Decision:
    return state, [] if state.stopping is not None else [StartSuccessor()]


def _on_winch(state: State, now: float) -> Decision:
    """Stops all workers. After USR2 the old server rests so, and HUP wakes it if the new one is no good."""
    if not state.policy.daemon:
        return state, [Log("debug", "SIGWINCH ignored. Not daemonized")]
    state, commands = resize(state, 0)
    return state, [Log("info", "graceful stop of workers"), *commands]


_HANDLERS: dict[Signals, Callable[[State, float], Decision]] = {
    Signals.SIGTERM: _on_term,
    Signals.SIGINT: _on_int,
    Signals.SIGQUIT: _on_int,
    Signals.SIGHUP: _on_hup,
    Signals.SIGTTIN: _on_ttin,
    Signals.SIGTTOU: _on_ttou,
    Signals.SIGUSR1: _on_usr1,
    Signals.SIGUSR2: _on_usr2,
    Signals.SIGWINCH: _on_winch,
}
