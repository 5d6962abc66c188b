"""Replacing workers that still serve: the successor first.

Of those that have a reason to retire (max_requests, lifetime, memory) a quarter may do so at once, and at least one. A
stuck worker is replaced whatever the others do.
"""

from __future__ import annotations

from itertools import takewhile
from signal import Signals

from tricorn import workers
from tricorn.arbiter.policy import leaving
from tricorn.arbiter.policy.commands import Command, Level, Log, Promote
from tricorn.arbiter.policy.events import WorkerSeen
from tricorn.arbiter.policy.state import Decision, State
from tricorn.arbiter.policy.worker import Booting, Cause, Leaving, Phase, Retiring, Serving, Silent, Worker
from tricorn.record import replace
from tricorn.workers.messages import Stuck

AT_ONCE = 4
"""One in so many workers may be replaced at a time."""


def retires(state: State, worker: Worker, reason: str) -> Decision:
    """The worker itself says that it has served enough; in gunicorn's words, which log scrapers know."""
    if isinstance(worker.phase, Leaving):
        return state, []
    log = Log("info", f"Autorestarting worker after current request. (pid:{worker.pid})")
    return ask_to_retire(state, worker, reason, "max_requests"), [log]


def ask_to_retire(state: State, worker: Worker, reason: str, cause: Cause) -> State:
    if not isinstance(worker.phase, Serving) or worker.phase.retire_reason is not None:
        return state
    return state.with_worker(replace(worker, phase=replace(worker.phase, retire_reason=reason)).because(cause))


def admit_retirements(state: State) -> State:
    """Gives a turn to those that have a reason. During a trial all are about to be replaced anyway."""
    if state.trial is not None or state.drain_at is not None:
        return state
    under_way = sum(_has_turn(worker.phase) for worker in state.workers.values())
    for worker in list(state.workers.values()):
        if under_way >= max(1, state.target // AT_ONCE):
            break
        match worker.phase:
            case Serving(since, str(reason), silent):
                state = state.with_worker(replace(worker, phase=Retiring(since, reason, silent=silent)))
                under_way += 1
    return state


def _has_turn(phase: Phase) -> bool:
    """Whether it is being replaced, until it is gone. A stuck worker needs no turn."""
    return (isinstance(phase, Retiring) or (isinstance(phase, Leaving) and phase.replaced)) and not phase.stuck


def stop_replaced(state: State, now: float) -> Decision:
    """Tells workers to leave whose successors serve."""
    commands: list[Command] = []
    retiring = [(worker, worker.phase) for worker in state.workers.values() if isinstance(worker.phase, Retiring)]
    retiring.sort(key=lambda each: -each[1].stuck)  # the stuck ones first: they serve least
    for worker, phase in [each for wanted in state.wanted() for each in _spare(state, retiring, *wanted)]:
        level: Level = "debug" if phase.stuck else "info"  # a stuck one has been told of
        commands.append(Log(level, f"Replacing worker (pid:{worker.pid}): {phase.reason}."))
        if worker.becomes_mold:
            commands.append(Promote(worker.nr, worker.generation))
        state, told = leaving.leave(state, worker, Signals.SIGTERM, now)
        commands += told
    return state, commands


def _spare(
    state: State, retiring: list[tuple[Worker, Retiring]], generation: int, target: int
) -> list[tuple[Worker, Retiring]]:
    """Returns those of this generation that `target` others can do without."""
    waiting = [each for each in retiring if each[0].generation == generation]
    return waiting[: max(0, state.serving(generation) + len(waiting) - target)]


def stuck(state: State, worker: Worker, call: Stuck) -> Decision:
    """A request takes too long. Its thread is lost for the service until it comes back."""
    stack = tuple(takewhile(lambda frame: f'File "{SERVER}' not in frame, call.stack))
    where = "\n  ".join((STACK, *stack)) if stack else ""
    if call.limit == "cancel":
        text = f"{worker}: {call.request} cancelled by operator after {call.age:.1f} seconds.{where}"
        return state, [Log("warning", text)]
    if call.limit == "request_timeout":
        text = f"{worker}: {call.request} has been running for {call.age:.1f} seconds ({call.limit}).{where}"
        return state, [Log("error", text)]
    # Begins as gunicorn's line does, which log scrapers know.
    how = f"for {call.age:.1f} seconds without progress ({call.limit}).{where}"
    text = f"WORKER TIMEOUT (pid:{worker.pid}): {call.request} has been running {how}"
    return _replace_stuck(state, worker), [Log("critical", text)]


def seen(state: State, worker: Worker, look: WorkerSeen, now: float) -> Decision:
    if worker.stuck:
        return _abort(state, worker, look, now)
    if not isinstance(worker.phase, Serving | Retiring):
        return state, []
    silent = _doubt(state, worker.phase.silent, look, now)
    if silent is not None and now - silent.since >= CONFIRMED:
        pid, seconds = worker.pid, round(look.silence)
        text = f"WORKER TIMEOUT (pid:{pid}): no sign of life for {seconds} seconds while busy; stopping it."
        return _replace_stuck(state, worker), [Log("critical", text)]
    worker = replace(worker, phase=replace(worker.phase, silent=silent))
    state = state.with_worker(worker)
    most = state.policy.max_worker_memory
    if look.rss is None or not 0 < most < look.rss:
        return state, []
    limit = f"{most / MEGABYTE:.0f} MiB (max_worker_memory)"
    reason = f"it uses {look.rss / MEGABYTE:.0f} MiB of memory, more than {limit}"
    return ask_to_retire(state, worker, reason, "memory"), []


def _doubt(state: State, before: Silent | None, look: WorkerSeen, now: float) -> Silent | None:
    """Whether the worker is silent, and since when.

    After a pause of the whole machine the arbiter may run first and find every heartbeat old: one look proves nothing.
    """
    if not 0 < state.policy.timeout <= look.silence:
        return None
    if before is not None and before.heartbeat == look.heartbeat:
        return before
    return Silent(look.heartbeat, now)


def _replace_stuck(state: State, worker: Worker) -> State:
    """Its successor starts now, whatever other workers do."""
    match worker.phase:
        case Serving(since):
            phase: Phase = Retiring(since, "a request exceeded timeout", stuck=1)
        case Retiring(stuck=stuck):
            phase = replace(worker.phase, stuck=stuck + 1, silent=None)
        case Leaving(stuck=stuck):
            phase = replace(worker.phase, stuck=stuck + 1)
        case Booting():
            return state
    return state.with_worker(replace(worker, phase=phase).because("timeout"))


def _abort(state: State, worker: Worker, look: WorkerSeen, now: float) -> Decision:
    """Aborts a worker of which only the stuck requests are left: the arbiter waits for none of them."""
    sent = worker.phase.sent_signal if isinstance(worker.phase, Leaving) else None
    if sent is Signals.SIGTERM and look.queued == 0 and 0 < look.in_flight <= worker.stuck:
        return leaving.leave(state, worker, Signals.SIGABRT, now)
    return state, []


MEGABYTE = 1 << 20

CONFIRMED = 1.0
"""Seconds of the arbiter's own time in which a silent worker must not have come back."""

STACK = " Python stack, most recent call first:"

SERVER = workers.__path__[0]
"""Frames from here on are below the application, and the same for every request."""
