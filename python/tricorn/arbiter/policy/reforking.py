"""Molds made of workers (`refork`): one that has served becomes the next mold, and the others are forked from it.

    a worker has served enough --> memory is measured --> it retires, drains, is looked through
       --nothing prevents forks--> it is the mold; the old one goes, and workers of older molds retire one after another
       --something does----------> it exits, named; after a second one no more is tried in this generation
    all have served as much since --> memory is measured again: if little was gained, no more is tried

No process that serves is forked: the worker has closed its connections, and its threads have ended.
"""

from __future__ import annotations

from signal import Signals

from tricorn.arbiter.policy import leaving, retiring
from tricorn.arbiter.policy.commands import AdoptMold, Command, Log
from tricorn.arbiter.policy.events import Weighed, WorkerSeen
from tricorn.arbiter.policy.state import Decision, State
from tricorn.arbiter.policy.worker import Leaving, Serving, Worker
from tricorn.record import replace

MOST_FAILURES = 2
LEAST_GAIN = 0.05


def seen(state: State, look: WorkerSeen) -> State:
    """Has what is due begin, when all else rests."""
    worker = state.workers[look.nr]
    if worker.generation != state.generation or not _rests(state) or not isinstance(worker.phase, Serving):
        return state
    mold = state.mold_of(state.generation)
    if mold is None or not isinstance(mold.phase, Serving):
        return state
    if worker.mold != mold.nr and mold.level:  # a mold that is loaded from code has nothing new
        return retiring.ask_to_retire(state, worker, "it was forked from an earlier mold", "refork")
    refork = state.refork_of_generation()
    if refork.before is not None and mold.level > refork.level:
        is_due = look.served >= state.policy.refork[mold.level - 1] and _are_all_of(state, mold)
        return replace(state, refork=replace(refork, weighs=True)) if is_due else state
    if refork.is_off or mold.level >= len(state.policy.refork) or look.served < state.policy.refork[mold.level]:
        return state
    if refork.before is None:
        return replace(state, refork=replace(refork, weighs=True, level=mold.level))
    reason = f"it has served {look.served} requests, and becomes the mold"
    return retiring.ask_to_retire(state, replace(worker, becomes_mold=True), reason, "refork")


def _rests(state: State) -> bool:
    """Whether all workers wanted serve, and none is being replaced."""
    if state.is_reloading or state.stopping is not None or state.drain_at is not None or not state.policy.refork:
        return False
    is_waiting = any(isinstance(each.phase, Serving) and each.phase.retire_reason for each in state.workers.values())
    return not is_waiting and len(state.workers) == state.serving(state.generation) == state.wanted_now


def _are_all_of(state: State, mold: Worker) -> bool:
    return all(worker.mold == mold.nr for worker in state.of(state.generation))


def weighed(state: State, event: Weighed) -> Decision:
    """Notes the memory before, or says what was gained."""
    if event.generation != state.generation:
        return state, []
    refork = replace(state.refork_of_generation(), weighs=False)
    before = refork.before
    mold = state.mold_of(state.generation)
    if before is None:
        return replace(state, refork=replace(refork, before=event.size or 0)), []
    refork = replace(refork, before=None)
    if mold is None or not mold.level or not (before and event.size):
        return replace(state, refork=refork), []
    gain = 1 - event.size / before
    served = state.policy.refork[mold.level - 1]
    now, then = (f"{size / retiring.MEGABYTE:.1f} MiB" for size in (event.size, before))
    text = f"Refork after {served} requests: {now} (PSS) a worker, {then} before ({-gain:+.0%})."
    if gain < LEAST_GAIN:
        refork = replace(refork, is_off=True)
        text += f" That is less than {LEAST_GAIN:.0%}: no more until the next reload."
    return replace(state, refork=refork), [Log("info", text)]


def became(state: State, worker: Worker, now: float) -> Decision:
    """A worker says that it can be forked. Only one that was told to become the mold is believed."""
    old = state.mold_of(worker.generation)
    if not (worker.becomes_mold and isinstance(worker.phase, Leaving)):
        return state, []
    level = 1 if old is None else old.level + 1
    mold = Worker(
        worker.nr, worker.generation, worker.started, worker.pid, phase=Serving(now), is_mold=True, level=level
    )
    state = state.without(worker.nr).with_worker(mold)
    commands: list[Command] = [AdoptMold(worker.nr)]
    is_wanted = worker.generation == state.generation and state.stopping is None
    if not is_wanted:
        state, told = leaving.leave(state, mold, Signals.SIGTERM, now)
        return state, [*commands, *told]
    commands.append(Log("info", f"{worker} has drained and is the mold now; workers are forked from it."))
    if old is not None:
        state, told = leaving.leave(state, old, Signals.SIGTERM, now)
        commands += told
    return state, commands


def failed(state: State, worker: Worker, reason: str) -> Decision:
    """A worker that was to become the mold is none, and exits."""
    if not worker.becomes_mold:
        return state, []
    if worker.nr in state.workers:
        state = state.with_worker(replace(worker, becomes_mold=False))
    if worker.generation != state.generation or state.stopping is not None:
        return state, []
    refork = state.refork_of_generation()
    refork = replace(refork, before=None, failures=refork.failures + 1)
    text = f"Refork failed; {str(worker).lower()} ends. {reason}"
    if refork.failures >= MOST_FAILURES:
        refork = replace(refork, is_off=True)
        text += " No more until the next reload."
    return replace(state, refork=refork), [Log("warning", text)]
