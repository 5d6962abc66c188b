"""Workers that are gone: what the log says of them, and when the next one starts."""

from __future__ import annotations

from signal import Signals

from tricorn.arbiter.policy import leaving, reforking, reloading
from tricorn.arbiter.policy.commands import Command, Level, Log
from tricorn.arbiter.policy.state import Backoff, Decision, Failure, State, Stopping
from tricorn.arbiter.policy.worker import Booting, Cause, Leaving, Phase, Retiring, Serving, Worker
from tricorn.errors import ExitCode
from tricorn.record import replace


def not_started(state: State, worker: Worker, reason: str, now: float) -> Decision:
    """The system would not fork."""
    log = Log("error", f"Could not fork a worker: {reason}.")
    return lost(state.without(worker.nr), worker, Failure(ExitCode.WORKER_BOOT, reason), now, [log])


def exited(state: State, worker: Worker, status: int, serving: tuple[str, ...], now: float) -> Decision:
    state = state.without(worker.nr)
    said = exit_log(worker, status)
    logs: list[Command] = [said]
    if serving and status:
        level: Level = "debug" if _was_aborted(worker) else "error"  # what has held it was told
        logs.append(Log(level, f"{worker} was serving: {', '.join(serving)}"))
    reason = worker.phase.failure if isinstance(worker.phase, Booting | Leaving) else None
    if reason is not None and worker.generation not in dict(state.wanted()):
        logs[0] = replace(said, level="debug")  # the reload has failed by another one
    state, told = reforking.failed(state, worker, "It ended before it could become the mold.")
    logs += told
    told_to = isinstance(worker.phase, Leaving) and reason is None
    if status == ExitCode.OK and _said_so(worker.phase):
        return state, logs  # it counts no more, and its successor is on the way or starts now
    if told_to or state.stopping is not None or worker.generation not in dict(state.wanted()):
        return state, logs
    if any(reason is not None and reason == failure.reason for failure in state.failures):
        logs[0] = replace(said, level="debug")  # each of many workers fails alike
    failed = status if status in (ExitCode.WORKER_BOOT, ExitCode.APP_LOAD) else ExitCode.WORKER_BOOT
    if reason is None and status < 0 and worker.served_since is None:
        reason = f"killed by {signal_name(-status)} while it booted"
    if reason is None and state.watch is not None and worker.generation == state.generation:
        how = f"exited with code {status}" if status >= 0 else f"was killed by {signal_name(-status)}"
        reason = f"a new worker (pid:{worker.pid}) {how}"
    return lost(state, worker, Failure(failed, reason, is_told=status == failed), now, logs)


def cause_of(worker: Worker, status: int) -> Cause:
    """Names the cause of an exit, for the metrics."""
    phase = worker.phase
    if isinstance(phase, Booting) or (isinstance(phase, Leaving) and phase.failure is not None):
        return "boot"
    sent = phase.sent_signal if isinstance(phase, Leaving) else None
    if status == -Signals.SIGKILL and sent is not Signals.SIGKILL:
        return "killed"
    # TERM may come from elsewhere to one that was not told to go here.
    in_order = status >= 0 or -status in TELLING if sent is not None else status in (0, -Signals.SIGTERM)
    return worker.cause or "asked" if in_order else "crash"


def _said_so(phase: Phase) -> bool:
    """Whether the worker has told that it ends, as those do that count their requests themselves."""
    return isinstance(phase, Retiring) or (isinstance(phase, Serving) and phase.retire_reason is not None)


def lost(state: State, worker: Worker, failure: Failure, now: float, logs: list[Command]) -> Decision:
    """A worker is missing: it is replaced, with restraint, or all is given up if none was ever ready."""
    if not state.proven:
        state = replace(state, failures=(*state.failures, failure))
        state, commands = given_up(state, now)
        return state, [*logs, *commands]
    if state.trial is not None and worker.generation == state.generation:
        state, commands = reloading.roll_back(state, failure.reason or "a new worker ended at once", now)
        return state, [*logs, *commands]
    state, told = made_again(state, worker, now)
    return state, [*logs, *told]


def given_up(state: State, now: float) -> Decision:
    """Stops if workers have failed before any was ready, and no other may still make it."""
    if state.proven or not state.failures or state.workers or state.stopping is not None:
        return state, []
    first = state.failures[0]
    return leaving.stop(state, now, Stopping(first.code, _reason(first), quick=True))


def made_again(state: State, worker: Worker, now: float) -> Decision:
    """Replaces it, with restraint."""
    backoff = restrain(state.backoff, worker, now)
    told: list[Command] = []
    if backoff.until > now and backoff != state.backoff:
        who = "Molds" if worker.is_mold else "Workers"
        text = f"{who} are crashing right after their start; next restart in {backoff.until - now:g} seconds."
        told.append(Log("warning", text))
    return replace(state, backoff=backoff), told


def _reason(failure: Failure) -> str:
    text = "App failed to load." if failure.code == ExitCode.APP_LOAD else "Worker failed to boot."
    return f"{text} ({failure.reason})" if failure.reason and not failure.is_told else text


def restrain(backoff: Backoff, worker: Worker, now: float) -> Backoff:
    """One early death is an accident and is replaced at once; each that follows doubles the wait."""
    if worker.served_since is not None and now - worker.served_since >= STEADY:
        return backoff
    if worker.started < backoff.last:
        return backoff  # of the same round: whatever killed its sibling killed it
    streak = 1 if now - backoff.last > FORGET else backoff.streak + 1
    delay = 0.0 if streak == 1 else min(BACKOFF_MOST, BACKOFF_FIRST * 2.0 ** min(streak - 2, 16))
    return Backoff(streak, now, now + delay)


def exit_log(worker: Worker, status: int) -> Log:
    """gunicorn's words, which log scrapers know; but one we killed did not run out of memory."""
    sent = worker.phase.sent_signal if isinstance(worker.phase, Leaving) else None
    if status >= 0:
        level: Level = "debug" if status == 0 or _was_aborted(worker) else "error"
        return Log(level, f"{worker} exited with code {status}.")
    name = signal_name(-status)
    if name == "SIGKILL":
        if sent is Signals.SIGKILL:
            return Log("warning", f"{worker} was sent SIGKILL: it did not exit in time.")
        return Log("error", f"{worker} was sent SIGKILL! Perhaps out of memory?")
    expected = name == "SIGTERM" or sent is not None
    return Log("info" if expected else "warning", f"{worker} was sent {name}!")


def _was_aborted(worker: Worker) -> bool:
    return isinstance(worker.phase, Leaving) and worker.phase.sent_signal is Signals.SIGABRT


def signal_name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


TELLING = (Signals.SIGTERM, Signals.SIGQUIT, Signals.SIGABRT, Signals.SIGKILL)
"""Signals by which a worker ends that was told to leave."""

STEADY = 10.0
"""A worker that served so long did not die of its start."""

FORGET = 60.0
"""Seconds without an early death after which the next one is an accident again."""

BACKOFF_FIRST = 0.5
BACKOFF_MOST = 30.0
"""Seconds before the second early death's successor starts, and the most there can be."""
