"""Molds: processes that load the application and fork the workers of a generation (`preload_app = mold`).

    lacking --StartMold--> Booting --ready--> Serving: forks workers --its generation ends--> Leaving --exit--> gone
       ^                      |                  |
       |                      +--fails: as the boot of a worker does
       +--another is made-----+-- it dies, hangs, or cannot fork

A worker that a mold forks has a pid when the kernel has told the arbiter of it. One whose mold dies before is asked of
the next mold, and is no failure of the application's.
"""

from __future__ import annotations

from signal import Signals

from tricorn.arbiter.policy import booting, exits, leaving, log_once
from tricorn.arbiter.policy.commands import Command, Log, Send, StartMold
from tricorn.arbiter.policy.events import ChildExited, Event, Spawned, SpawnFailed, Told
from tricorn.arbiter.policy.state import Decision, Failure, State
from tricorn.arbiter.policy.worker import Booting, Leaving, Serving, Worker
from tricorn.errors import ExitCode
from tricorn.record import replace
from tricorn.workers.messages import BootFailed, Message, Notice, Ready, StackLines

ACCIDENTS = 3
"""A mold that was ready and dies so often, before a worker has served, is a failure of the start or the reload."""

MOST_FAILED_FORKS = 2
"""A mold that fails to fork so often is made again: something in it may prevent forks."""


def provide(state: State, generation: int, target: int, now: float) -> Decision:
    """Starts the mold of a generation that has none."""
    if not state.lacks_mold(generation, target) or now < state.backoff.until:
        return state, []
    mold = Worker(state.next_nr, generation, started=now, is_mold=True)
    return replace(state.with_worker(mold), next_nr=mold.nr + 1), [StartMold(mold.nr, generation)]


def decide(state: State, mold: Worker, event: Event, now: float) -> Decision:
    match event:
        case Spawned(_, pid):
            return state.with_worker(replace(mold, pid=pid)), []
        case SpawnFailed(_, reason):
            log = Log("error", f"Could not fork a mold: {reason}.")
            return exits.lost(state.without(mold.nr), mold, Failure(ExitCode.WORKER_BOOT, reason), now, [log])
        case Told(_, message):
            return _told(state, mold, message, now)
        case ChildExited(_, status):
            return _exited(state, mold, status, now)
    return state, []


def _told(state: State, mold: Worker, message: Message, now: float) -> Decision:
    match message:
        case Ready() if isinstance(mold.phase, Booting):
            state = state.with_worker(replace(mold, phase=Serving(now)))
            text = f"{mold} has loaded the application in {now - mold.started:.1f} s; workers are forked from it."
            commands: list[Command] = [Log("info", text)]
            if state.reopened >= mold.started:
                commands.append(Send(mold.nr, Signals.SIGUSR1))
            return state, commands
        case BootFailed(_, reason):
            return booting.failed(state, mold, reason), []
        case StackLines(lines):
            return booting.told_where(state, mold, lines), []
        case Notice():
            return log_once.log_once(state, mold, message, now)
    return state, []  # it serves no request, and has nothing else to tell


def _exited(state: State, mold: Worker, status: int, now: float) -> Decision:
    state = state.without(mold.nr)
    said = exits.exit_log(mold, status)
    reason = mold.phase.failure if isinstance(mold.phase, Booting | Leaving) else None
    if isinstance(mold.phase, Leaving) and reason is None:
        return state, [replace(said, level="debug")]  # it was told to
    if state.stopping is not None or mold.generation not in dict(state.wanted()):
        return state, [said]
    if mold.served_since is not None and state.backoff.streak < ACCIDENTS:
        state, told = exits.made_again(state, mold, now)
        logs = [said, Log("info", "Making the mold again; the workers keep serving.")] if reason is None else [said]
        return state, [*logs, *told]
    failed = status if status in (ExitCode.WORKER_BOOT, ExitCode.APP_LOAD) else ExitCode.WORKER_BOOT
    if reason is None and status < 0:
        reason = f"the mold was killed by {exits.signal_name(-status)}"
    return exits.lost(state, mold, Failure(failed, reason, is_told=status == failed), now, [said])


def has_forked(state: State, worker: Worker) -> State:
    """Notes that the mold of this worker can fork."""
    mold = None if worker.mold is None else state.molds.get(worker.mold)
    return state if mold is None or not mold.failed_forks else state.with_worker(replace(mold, failed_forks=0))


def not_forked(state: State, worker: Worker, reason: str, now: float) -> Decision:
    """There is no process of this worker: its mold has died, or could not fork."""
    mold = None if worker.mold is None else state.molds.get(worker.mold)
    if mold is None or isinstance(mold.phase, Leaving) or isinstance(worker.phase, Leaving):
        state, told = exits.given_up(state.without(worker.nr), now)
        return state, [Log("debug", f"A worker was not forked: {reason}."), *told]
    mold = replace(mold, failed_forks=mold.failed_forks + 1)
    commands: list[Command] = []
    if mold.failed_forks >= MOST_FAILED_FORKS:
        state, commands = _give_up(state, mold, f"could not fork {mold.failed_forks} workers in succession", now)
    else:
        state = state.with_worker(mold)
    state, told = exits.not_started(state, worker, reason, now)
    return state, [*commands, *told]


def hangs(state: State, worker: Worker, now: float) -> Decision:
    """The mold has not forked this worker within `boot_timeout`."""
    reason = f"did not fork a worker within {state.policy.boot_timeout:g} seconds (boot_timeout)"
    mold = None if worker.mold is None else state.molds.get(worker.mold)
    state, commands = leaving.leave(state, worker, Signals.SIGKILL, now)
    if mold is None or isinstance(mold.phase, Leaving):
        return state, commands
    state, told = _give_up(state, mold, reason, now)
    return state, [*commands, *told]


def _give_up(state: State, mold: Worker, reason: str, now: float) -> Decision:
    """Kills a mold that is of no use."""
    if isinstance(mold.phase, Leaving):
        return state, []
    log = Log("error", f"{mold} {reason}; it is made again.")
    state, commands = leaving.leave(state, mold, Signals.SIGKILL, now)
    mold = state.molds[mold.nr]
    assert isinstance(mold.phase, Leaving)
    return state.with_worker(replace(mold, phase=replace(mold.phase, failure=reason))), [log, *commands]
