"""Answers queries, as JSON has it, of what the arbiter knows.

Workers write their pages, so nothing in them is believed: what cannot be read is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tricorn.arbiter.control.inquiries import read_object
from tricorn.arbiter.parts import Parts
from tricorn.arbiter.policy.arguments import Refusal
from tricorn.arbiter.policy.canary import Sample
from tricorn.arbiter.policy.state import State
from tricorn.arbiter.policy.worker import Booting, Leaving, Retiring, Worker
from tricorn.arbiter.worker_handle import WorkerHandle
from tricorn.config.config import DEFAULT
from tricorn.config.registry import SETTINGS
from tricorn.config.shown import shown
from tricorn.log import Logger
from tricorn.metrics.scoreboard import LAYOUT, Snapshot
from tricorn.unpatched import os, socket, time
from tricorn.version import __version__
from tricorn.workers.registry import AUTO

if TYPE_CHECKING:
    from tricorn.arbiter.control.commands import Query
    from tricorn.arbiter.listeners.sockets import Listener

Json = dict[str, object]

SECOND = 1_000_000_000


def answer(query: Query, state: State, parts: Parts, now: float) -> Json:
    """Answers every query but `pages`, which comes with descriptors. Raises Refusal."""
    match query.look:
        case "status":
            return status(state, parts, now, brief=query.brief)
        case "workers":
            return workers(state, parts, now, brief=query.brief)
        case "listeners":
            return listeners(parts)
        case "stats":
            return stats(state, parts, now)
        case "requests":
            return requests(parts, query.older)
        case "routes":
            return routes(parts)
        case "sessions":
            return sessions(parts)
        case "slow":
            return slow(parts)
        case "config":
            return config(parts, only_changed=query.changed)
        case "stalls":
            return stalls(parts, query.since, records=query.records)
    if reason := ailment(state):
        raise Refusal("refused", reason)
    return {"healthy": True}


def status(state: State, parts: Parts, now: float, *, brief: bool = False) -> Json:
    """Describes the server as a whole. `brief`: without what stands in the pages."""
    server, generation = parts.server, parts.generation
    about: Json = {
        "version": __version__,
        "pid": server.pid,
        "name": server.proc_name,
        "app": generation.app.name,
        "class": _class(parts),
        "state": _phase_of(state),
        "ready": is_ready(state),
        "uptime": round(now - parts.statistics.began, 3),
        "generation": state.generation,
        "reloading": state.is_reloading,
        "canary": canary(state, now),
        "workers": {
            "target": state.target,
            "configured": state.policy.workers,
            "serving": sum(worker.served_since is not None and worker.counts for worker in state.workers.values()),
            "booting": sum(isinstance(worker.phase, Booting) for worker in state.workers.values()),
            "retiring": sum(isinstance(worker.phase, Retiring) for worker in state.workers.values()),
            "leaving": sum(isinstance(worker.phase, Leaving) for worker in state.workers.values()),
        },
        "mold": mold(state, now),
        "listeners": [str(listener) for listener in generation.listeners],
        "log_level": _log_level(generation.log),
        "successor": state.successor,
        "predecessor": parts.upgrade.parent,
    }
    return about if brief else about | {"directory": _directory()} | _load(parts)


def mold(state: State, now: float) -> Json | None:
    """Describes the process of which the newest workers are forked; None without one."""
    found = state.mold_of(state.generation)
    if found is None:
        return None
    return {
        "pid": found.pid,
        "state": _state_of(found),
        "age": round(now - found.started, 3),
        "reforks": found.level,
    }


def canary(state: State, now: float) -> Json | None:
    """Describes the canaries of a reload, while there are no other new workers; None without any."""
    watch = state.watch
    if watch is None:
        return None
    about: Json = {"workers": watch.workers, "state": "booting" if watch.since is None else "watched"}
    if watch.since is not None:
        about["seconds_left"] = round(max(0.0, watch.plan.seconds - (now - watch.since)), 1)
    if watch.look is not None:
        about |= {name: _sample(each) for name, each in (("new", watch.look.new), ("old", watch.look.old))}
    return about


def _sample(sample: Sample) -> Json:
    return {
        "workers": sample.workers,
        "requests": sample.requests,
        "failed": sample.failed,
        "late": sample.late,
        "p50": round(sample.percentile(0.5), 6),
        "p95": round(sample.percentile(0.95), 6),
    }


def _directory() -> str | None:
    """Returns the working directory; None if it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _class(parts: Parts) -> str:
    """Returns the worker class; with `auto` the one that the newest worker has chosen, once one serves."""
    kind = parts.generation.worker_class.alias
    if kind != AUTO:
        return kind
    newest = max(
        (each for each in parts.processes.handles.values() if each.kind), key=lambda each: each.nr, default=None
    )
    return kind if newest is None else newest.kind


def _log_level(log: Logger) -> str | None:
    """Returns the level in force; a class of the user's may have others."""
    level = getattr(log, "loglevel", None)
    return next((name for name, number in Logger.LOG_LEVELS.items() if number == level), None)


def _load(parts: Parts) -> Json:
    read = (handle.snapshot() for handle in parts.processes.handles.values())
    seen = [each.figures for each in read if each is not None]
    return {
        "requests": {
            "running": sum(figures["in_flight"] for figures in seen),
            "waiting": sum(figures["queued"] for figures in seen),
        },
        "connections": sum(figures["connections"] for figures in seen),
    }


def is_ready(state: State) -> bool:
    """Returns whether requests are welcome: some worker serves, and the server was not told to stop."""
    serving = any(worker.counts and worker.served_since is not None for worker in state.workers.values())
    return serving and state.stopping is None and not state.is_unready


def ailment(state: State) -> str | None:
    """Returns why the server is not healthy; None if it is: some worker serves, readiness denied or not."""
    serving = [worker for worker in state.workers.values() if worker.served_since is not None]
    if not serving:
        return "No worker is ready yet." if not state.proven else "No worker is ready."
    if all(worker.stuck for worker in serving):
        return "Every worker is stuck in a request."
    return None


def _phase_of(state: State) -> str:
    if state.stopping is not None or state.drain_at is not None:
        return "stopping"
    return "serving" if state.proven else "booting"


def workers(state: State, parts: Parts, now: float, *, brief: bool = False) -> Json:
    handles = parts.processes.handles
    rows = [worker(each, handles.get(each.nr), now, brief=brief) for each in state.workers.values()]
    return {"workers": sorted(rows, key=lambda row: (row["slot"] is None, row["slot"]))}


def worker(each: Worker, handle: WorkerHandle | None, now: float, *, brief: bool = False) -> Json:
    row: Json = {
        "slot": None if handle is None else handle.worker.slot,
        "pid": each.pid,
        "nr": each.nr,
        "generation": each.generation,
        "class": None if handle is None else handle.kind or handle.worker.alias,
        "state": _state_of(each),
        "age": round(now - each.started, 3),
        "stuck": each.stuck,
        "note": _note_of(each),
    }
    if brief:
        return row
    row["served"] = each.served_since is not None
    row["signal"] = each.phase.sent_signal.name if isinstance(each.phase, Leaving) else None
    seen = None if handle is None else handle.snapshot()
    if seen is not None:
        row |= {
            "threads": seen.threads,
            "oldest_wait": round(seen.oldest_wait, 6),
            "heartbeat": heartbeat_age(seen),
            "statuses": dict(zip(("1xx", "2xx", "3xx", "4xx", "5xx"), seen.statuses, strict=True)),
            "figures": seen.figures,
        }
    return row


def heartbeat_age(seen: Snapshot) -> float | None:
    """Returns seconds since anything of the worker last ran; None while nothing is in flight, since it rests then."""
    if not seen.figures["in_flight"]:
        return None
    return max(0.0, round((time.monotonic_ns() - seen.heartbeat) / SECOND, 3))


def _state_of(worker: Worker) -> str:
    return type(worker.phase).__name__.lower()


def _note_of(worker: Worker) -> str | None:
    match worker.phase:
        case Booting(failure=str(reason)) | Retiring(reason=reason):
            return reason
    return None


def listeners(parts: Parts) -> Json:
    generation = parts.generation
    return {
        "listeners": [listener(each) for each in generation.listeners],
        "admin": [listener(each) for each in generation.admin],
    }


def listener(each: Listener) -> Json:
    kinds = {socket.AF_INET: "tcp", socket.AF_INET6: "tcp6", socket.AF_UNIX: "unix"}
    kind = kinds.get(each.socket.family, "unknown")
    descriptor = each.socket.fileno()
    return {
        "address": str(each),
        "type": kind,
        "fd": descriptor if descriptor >= 0 else None,  # a server that stops has closed it
    }


def stats(state: State, parts: Parts, now: float) -> Json:
    """Sums figures over the workers that there are: those that have ended are in the ledger."""
    figures: dict[str, int] = {}
    statuses = [0, 0, 0, 0, 0]
    for handle in parts.processes.handles.values():
        seen = handle.snapshot()
        if seen is not None:
            counted = seen.figures  # made anew each time it is asked for
            for name in counted.keys() - {"slot", "generation"}:
                figures[name] = figures.get(name, 0) + counted[name]
            statuses = [one + other for one, other in zip(statuses, seen.statuses, strict=True)]
    return {
        "uptime": round(now - parts.statistics.began, 3),
        "pid": parts.server.pid,
        "workers_current": len(state.workers),
        "workers_target": state.target,
        "workers_spawned": parts.server.worker_age,
        "workers_exited": dict(parts.statistics.exits),
        "reloads": dict(parts.statistics.reloads),
        "statuses": dict(zip(("1xx", "2xx", "3xx", "4xx", "5xx"), statuses, strict=True)),
        "figures": dict(sorted(figures.items())),
    }


def requests(parts: Parts, older: float) -> Json:
    """Lists the requests that run, the oldest first."""
    found = []
    for handle in parts.processes.handles.values():
        for request in handle.requests():
            if request.age >= older:
                age = round(request.age, 3)
                row = {"slot": handle.worker.slot, "place": request.slot, "start": request.started, "age": age}
                found.append({**row, "pid": handle.pid, "phase": request.phase, "text": request.text})
    found.sort(key=lambda row: -float(row["age"]))  # type: ignore[arg-type]
    return {"requests": found[:MAX_REQUESTS], "count": len(found)}


def stalls(parts: Parts, since: Literal["start", "minute"], *, records: bool) -> Json:
    """Lists what has held up the workers, the most expensive first."""
    kept = parts.statistics.stalls
    if kept is None:
        nothing = {"count": 0, "seconds": 0.0, "request_seconds": 0.0}
        found: Json = {"since": since, "stalls": [], "forgotten": nothing}
    else:
        found = kept.report(since, time.monotonic())
    found["doctor"] = parts.generation.config.doctor
    return found | {"records": kept.records() if kept is not None else []} if records else found


MAX_REQUESTS = 1000
"""Rows of a list: an answer has an end."""


def routes(parts: Parts) -> Json:
    """Lists the cost of the application's routes since the start, the most expensive first."""
    counted = parts.processes.hiring.routes.read()
    rows = [
        {
            "route": each.name,
            "requests": each.requests,
            "errors": each.errors,
            "seconds": each.time / 1e9,
            "told_seconds": each.told / 1e9,
            "cpu_seconds": each.computed / 1e9,
            "yielded_seconds": each.yielded / 1e9,
            "blocked_seconds": each.blocked / 1e9,
            "delayed_seconds": each.delayed / 1e9,
            "buckets": each.buckets,
        }
        for each in sorted(counted or (), key=lambda each: -each.time)
        if each.requests
    ]
    return {"counted": counted is not None, "routes": rows}


def sessions(parts: Parts) -> Json:
    """Counts the sessions of each worker (`affinity`)."""
    mailboxes = parts.processes.shared.mailboxes
    counts = {} if mailboxes is None else {pid: count for _, pid, count in mailboxes.sessions.counts()}
    rows = [
        {"slot": handle.worker.slot, "pid": handle.pid, "sessions": counts[handle.pid]}
        for handle in sorted(parts.processes.handles.values(), key=lambda handle: handle.worker.slot)
        if handle.pid in counts
    ]
    return {"followed": mailboxes is not None, "workers": rows}


def config(parts: Parts, *, only_changed: bool) -> Json:
    """Lists every setting with its value and where that comes from; secrets are masked."""
    settings = parts.generation.config
    rows = [
        {"name": each.name, "value": shown(each, settings.value(each.name)), "origin": settings.origin(each.name)}
        for each in SETTINGS
        if not only_changed or settings.origin(each.name) != DEFAULT
    ]
    return {"settings": rows, "file": next(reversed(parts.generation.files), None)}


def pages(state: State, parts: Parts) -> tuple[Json, tuple[int, ...]]:
    """Describes the descriptors that go with it: the pages of the workers, the group page and the ledger."""
    shared, current = parts.processes.shared, parts.generation.pages
    if current is None:
        raise ValueError("a generation that serves has pages")
    descriptors = (current.memory.descriptor, shared.group_memory.descriptor, shared.ledger_memory.descriptor)
    table = [
        {
            "slot": handle.worker.slot,
            "pid": handle.pid,
            "nr": handle.nr,
            "generation": handle.worker.spec.generation,
            "state": _state_of(state.workers[handle.nr]) if handle.nr in state.workers else "gone",
            # One of an earlier generation may have its page in a region of before.
            "page": handle.page if handle.pages is current else None,
        }
        for handle in parts.processes.handles.values()
    ]
    answer: Json = {
        "layout": LAYOUT,
        "size": current.size,
        "count": current.count,
        "group_bytes": len(shared.group),
        "ledger_bytes": len(shared.ledger),
        "descriptors": ["region", "group", "ledger"],
        "workers": table,
    }
    return answer, descriptors


def slow(parts: Parts) -> Json:
    """Collects what workers have written of their slow requests."""
    workers: list[Json] = []
    left: list[int] = []
    room = MAX_SLOW
    for handle in parts.processes.handles.values():
        text = handle.told_slow()
        if len(text) > room:
            left.append(handle.worker.slot)  # not read: the arbiter has others to look after
            continue
        room -= len(text)
        written = read_object(text)
        if written is not None:
            workers.append({"slot": handle.worker.slot, "pid": handle.pid, "profile": written})
    return {"workers": workers, "left": left}


MAX_SLOW = 512 << 10
"""Bytes of all workers' reports: those for which there is no room are named, and left out."""
