"""Replacing workers that still serve: the successor first.

A wish (max_requests, its lifetime, its memory) is granted to a quarter of the workers at once, and at least to one;
a stuck worker is replaced whatever the others do.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from signal import Signals

from tricorn import workers
from tricorn.arbiter.mind import leaving
from tricorn.arbiter.mind.commands import Command, Log
from tricorn.arbiter.mind.events import WorkerSeen
from tricorn.arbiter.mind.state import Decision, Silent, State, Worker
from tricorn.workers.messages import Stuck

AT_ONCE = 4
"""One in so many workers may be replaced at a time."""


def retires(state: State, worker: Worker, reason: str) -> Decision:
    """The worker itself says that it has served enough; in gunicorn's words, which log scrapers know."""
    log = Log("info", f"Autorestarting worker after current request. (pid:{worker.pid})")
    return wishes(state, worker, reason), [log]


def wishes(state: State, worker: Worker, reason: str) -> State:
    if worker.wish is not None or not worker.staying:
        return state
    return state.with_worker(replace(worker, wish=reason))


def end_of_life(state: State, now: float) -> State:
    for worker in list(state.workers.values()):
        if now >= state.end_of_life(worker):
            state = wishes(state, worker, f"it has served for {now - (worker.ready or now):.0f} seconds")
    return state


def grant(state: State) -> State:
    """Gives a turn to those that wish to go. During a trial all are about to be replaced anyway."""
    if state.trial is not None or state.announced is not None:
        return state
    under_way = sum(worker.retiring is not None and not worker.stuck for worker in state.workers.values())
    for worker in list(state.workers.values()):
        if under_way >= max(1, state.target // AT_ONCE):
            break
        if worker.wish is not None and worker.staying:
            state = state.with_worker(replace(worker, retiring=worker.wish))
            under_way += 1
    return state


def dismiss(state: State, now: float) -> Decision:
    """Those whose successors serve may leave."""
    commands: list[Command] = []
    waiting = [worker for worker in state.workers.values() if worker.retiring is not None and worker.leaving is None]
    spare = state.serving(state.generation) + len(waiting) - state.target
    # The stuck ones first: they serve least.
    for worker in sorted(waiting, key=lambda worker: -worker.stuck)[: max(0, spare)]:
        commands.append(Log("info", f"{worker} is replaced: {worker.retiring}."))
        state, told = leaving.leave(state, worker, Signals.SIGTERM, now)
        commands += told
    return state, commands


def stuck(state: State, worker: Worker, call: Stuck) -> Decision:
    """A request takes too long. Its thread is lost for the service until it comes back."""
    stack = tuple(takewhile(lambda frame: f'File "{SERVER}' not in frame, call.stack))
    where = "\n  ".join((STACK, *stack)) if stack else " The thread did not say where it is."
    how = "" if call.limit == "request_timeout" else " without progress"
    text = f"{worker}: {call.request} has been running for {call.age:.1f} seconds{how} ({call.limit}).{where}"
    if call.limit == "request_timeout":
        return state, [Log("error", text)]
    commands: list[Command] = [Log("critical", f"WORKER TIMEOUT (pid:{worker.pid})"), Log("error", text)]
    return _replace_stuck(state, worker), commands


def seen(state: State, worker: Worker, event: WorkerSeen, now: float) -> Decision:
    policy = state.policy
    if worker.stuck:
        return _abort(state, worker, event, now)
    worker = _doubt(state, worker, event, now)
    state = state.with_worker(worker)
    if worker.silent is not None and now - worker.silent.since >= CONFIRMED:
        worker = replace(worker, silent=None)
        text = f"{worker} has a request and shows no sign of life for {event.silence:.0f} seconds: it is stopped."
        commands: list[Command] = [Log("critical", f"WORKER TIMEOUT (pid:{worker.pid})"), Log("error", text)]
        return _replace_stuck(state, worker), commands
    if event.rss is None or not 0 < policy.max_memory < event.rss:
        return state, []
    limit = f"{policy.max_memory / MEGABYTE:.0f} MiB (max_worker_memory)"
    return wishes(state, worker, f"it uses {event.rss / MEGABYTE:.0f} MiB of memory, more than {limit}"), []


def _doubt(state: State, worker: Worker, event: WorkerSeen, now: float) -> Worker:
    """Notes whether the worker is silent, and since when.

    After a pause of the whole machine the arbiter may run first and find every heartbeat old: one look proves nothing.
    """
    timeout = state.policy.timeout
    if not 0 < timeout <= event.silence or worker.leaving is not None:
        return replace(worker, silent=None)
    if worker.silent is not None and worker.silent.heartbeat == event.heartbeat:
        return worker
    return replace(worker, silent=Silent(event.heartbeat, now))


def _replace_stuck(state: State, worker: Worker) -> State:
    """Its successor starts now, whatever other workers wish."""
    reason = worker.retiring or "a request has held it for too long"
    return state.with_worker(replace(worker, stuck=worker.stuck + 1, retiring=reason))


def _abort(state: State, worker: Worker, event: WorkerSeen, now: float) -> Decision:
    """What could be finished is finished: only the stuck requests are left, and nobody waits for those."""
    told = worker.leaving.told if worker.leaving is not None else None
    if told is Signals.SIGTERM and event.queued == 0 and 0 < event.in_flight <= worker.stuck:
        return leaving.leave(state, worker, Signals.SIGABRT, now)
    return state, []


MEGABYTE = 1 << 20

CONFIRMED = 1.0
"""Seconds of the arbiter's own time in which a silent worker must not have come back."""

STACK = " Python stack, most recent call first:"

SERVER = workers.__path__[0]
"""Frames from here on are below the application, and the same for every request."""
