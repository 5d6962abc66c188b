"""Events for clients that follow (`ctl events`), made of the decisions of the policy. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tricorn.arbiter.policy.commands import Command, Commit, Reload, Rollback, WorkersChanged
from tricorn.arbiter.policy.events import Event, ReloadFailed, Told
from tricorn.arbiter.policy.state import State
from tricorn.arbiter.policy.worker import Booting, Leaving, Retiring, Serving, Worker
from tricorn.workers.messages import Stuck

Json = dict[str, object]


def events(before: State, event: Event, after: State, commands: Sequence[Command]) -> Iterator[Json]:
    match event:
        case Told(nr, Stuck("cancel", _, age, request)) if nr in after.workers:
            yield _of(after.workers[nr], "cancelled", request=request, age=age)
        case Told(nr, Stuck(limit, _, age, request)) if nr in after.workers:
            yield _of(after.workers[nr], "stuck", request=request, age=age, limit=limit)
        case ReloadFailed(reason):
            yield {"event": "reload_refused", "reason": reason}
    for worker in after.workers.values():
        yield from _changes(before.workers.get(worker.nr), worker)
    for worker in before.workers.values():
        if worker.nr not in after.workers:
            yield _of(worker, "gone", cause=worker.cause)
    for command in commands:
        yield from _done(command)
    yield from _canary(before, after)
    if before.unready != after.unready:
        yield {"event": "readiness", "on": not after.unready}
    if before.stopping is None and after.stopping is not None:
        yield {"event": "stopping", "quick": after.stopping.quick}


def _canary(before: State, after: State) -> Iterator[Json]:
    was, watch = before.watch, after.watch
    about: Json = {"generation": after.generation}
    if was is None and watch is not None:
        yield {"event": "canary_booting", **about, "workers": watch.workers}
    if (was is None or was.since is None) and watch is not None and watch.since is not None:
        yield {"event": "canary_watched", **about, "seconds": watch.plan.seconds}
    if was is not None and watch is None and before.generation == after.generation and after.stopping is None:
        yield {"event": "canary_passed", **about}


def _done(command: Command) -> Iterator[Json]:
    match command:
        case Reload():
            yield {"event": "reload_begun"}
        case Commit(generation):
            yield {"event": "reload_committed", "generation": generation}
        case Rollback(generation, reason):
            yield {"event": "reload_rolled_back", "generation": generation, "reason": reason}
        case WorkersChanged(new, old):
            yield {"event": "scaled", "workers": new, "previous": old}


def _changes(before: Worker | None, after: Worker) -> Iterator[Json]:
    if after.pid is not None and (before is None or before.pid is None):
        yield _of(after, "spawned")
    if before is None or type(before.phase) is type(after.phase):
        return
    match after.phase:
        case Serving():
            yield _of(after, "ready")
        case Retiring(reason=reason):
            yield _of(after, "retiring", reason=reason)
        case Leaving():
            yield _of(after, "leaving", cause=after.cause, replaced=after.phase.replaced)
        case Booting():
            pass


def _of(worker: Worker, event: str, **more: object) -> Json:
    return {"event": event, "pid": worker.pid, "nr": worker.nr, "generation": worker.generation, **more}
