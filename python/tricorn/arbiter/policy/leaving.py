"""Workers that are told to go: TERM, then QUIT, then KILL; and the end of everything."""

from __future__ import annotations

from signal import Signals

from tricorn.arbiter.policy.commands import CloseListeners, Command, Log, Notify, Order, Send, ServiceState
from tricorn.arbiter.policy.state import NEVER, Decision, State, Stopping
from tricorn.arbiter.policy.worker import Leaving, Worker, told_to_leave
from tricorn.errors import ExitCode
from tricorn.record import replace


def leave(state: State, worker: Worker, signal: Signals, now: float) -> Decision:
    if worker.is_mold:
        # It has no request to finish, and no handler for TERM. KILL is for one that hangs while it loads.
        signal = signal if signal is Signals.SIGKILL else Signals.SIGTERM
        phase = told_to_leave(worker.phase, signal, NEVER if signal is Signals.SIGKILL else now + QUIT_PATIENCE)
        return state.with_worker(replace(worker, phase=phase)), [Send(worker.nr, signal)]
    patience = {
        Signals.SIGTERM: state.policy.graceful_timeout,
        Signals.SIGQUIT: QUIT_PATIENCE,
        Signals.SIGABRT: ABORT_PATIENCE,
    }.get(signal, NEVER)
    commands: list[Command] = []
    if signal is Signals.SIGTERM:
        commands.append(order(state, worker))
    commands.append(Send(worker.nr, signal))
    return state.with_worker(replace(worker, phase=told_to_leave(worker.phase, signal, now + patience))), commands


def order(state: State, worker: Worker) -> Order:
    """Makes the order for the page of a worker that gets TERM."""
    yields = state.stopping is None and not state.policy.reuse_port
    replaced = state.stopping is None and state.target > 0  # after WINCH no worker serves on
    # The Python of a stuck one may never run a signal handler again; its monitor still does what the page says. With
    # `reload` the drain is waited for, and a long call must not hold it up.
    drain = worker.stuck > 0 or state.policy.reload
    return Order((worker.nr,), not_ready=state.is_unready, drain=drain, yields=yields, replaced=replaced)


def escalate(state: State, worker: Worker, phase: Leaving, now: float) -> Decision:
    """Its time to leave is over: it is told more clearly."""
    if phase.sent_signal is not Signals.SIGTERM or worker.is_mold:
        return leave(state, worker, Signals.SIGKILL, now)
    patience = f"{state.policy.graceful_timeout:g} seconds (graceful_timeout)"
    log = Log("warning", f"{worker} is still running after {patience}.")
    # A stuck one gets ABRT, gunicorn's signal for it: its hook `worker_abort` may want to know.
    state, commands = leave(state, worker, Signals.SIGABRT if phase.stuck else Signals.SIGQUIT, now)
    return state, [log, *commands]


def start_drain_delay(state: State, now: float) -> Decision:
    """TERM with `drain_delay`: serves on, but says that it will not for long."""
    delay = state.policy.drain_delay
    text = f"Draining for {delay:g} seconds (drain_delay): still serving; the readiness probe answers 503."
    state = replace(state, drain_at=now + delay)
    # The line says what is so: workers close connections from it on.
    return state, [Order(tuple(state.workers), not_ready=True), Log("info", text), Notify(ServiceState.STOPPING)]


def end_drain_delay(state: State, now: float) -> Decision:
    if state.drain_at is None or now < state.drain_at:
        return state, []
    return stop(state, now, Stopping(ExitCode.OK, failure=None, quick=False))


def quiet(state: State, seconds: float, now: float) -> Decision:
    """No request comes any more: the load balancers have noticed."""
    if state.drain_at is None:
        return state, []
    log = Log("info", f"No requests for {seconds:g} seconds (drain_quiet); draining ends early.")
    state, commands = stop(state, now, Stopping(ExitCode.OK, failure=None, quick=False))
    return state, [log, *commands]


def stop(state: State, now: float, stopping: Stopping) -> Decision:
    """Tells all workers to leave. A quick stop may follow a graceful one; asked for twice it kills."""
    before = state.stopping
    if before is not None and not stopping.quick:
        return state, []  # already leaving gracefully, or faster
    commands: list[Command] = []
    signal = Signals.SIGQUIT if stopping.quick else Signals.SIGTERM
    if before is None:
        commands += [CloseListeners(), Notify(ServiceState.STOPPING)]
    elif before.quick:
        signal = Signals.SIGKILL
        stopping = before
    else:
        commands.append(Log("info", "Quick shutdown requested"))
        stopping = replace(before, quick=True)
    state = replace(state, stopping=stopping, trial=None, reload_pending=False, drain_at=None)
    for worker in list(state.processes.values()):
        state, told = leave(state, worker.because("shutdown"), signal, now)
        commands += told
    return state, commands


QUIT_PATIENCE = 2.0
"""Seconds between QUIT and KILL; gunicorn's quick shutdown gives as much."""

ABORT_PATIENCE = 2.0
"""Seconds between ABRT and KILL."""
