"""A look and the change since the last one as an object for programs. Its shape has a version: `schema`."""

from __future__ import annotations

from typing import Any

from tricorn_tools.top import routes, table
from tricorn_tools.top.change import Change, Changes, RouteChange, Times
from tricorn_tools.top.look import Look, Route, Worker

SCHEMA = 1
"""It grows when a name goes or changes its meaning, not when one is added."""


def of(look: Look, changes: Changes, moment: float) -> dict[str, Any]:
    """`moment`: seconds since 1970. Times are in seconds, sizes in bytes; null is what is not known."""
    server = look.server
    return {
        "schema": SCHEMA,
        "time": moment,
        "interval": changes.seconds,
        "server": {
            "name": server.name,
            "version": server.version,
            "pid": server.pid,
            "generation": server.generation,
            "workers_wanted": server.wanted,
            "up": server.up,
            "ready": server.is_ready,
            "notes": list(server.notes),
        },
        "all": _change(changes.all),
        "workers": [_worker(worker, changes.workers[worker.entry.number]) for worker in look.workers],
        "mold": None if look.mold is None else _mold(look.mold),
        "requests": [
            {
                "worker": one.worker.entry.slot,
                "pid": one.worker.entry.pid,
                "slot": one.request.slot,
                "started": one.request.started,
                "age": one.request.age,
                "phase": one.request.phase,
                "text": one.request.text,
            }
            for one in table.running(look, 0.0)
        ],
        "routes": None
        if look.routes is None
        else [
            _route(route, changes.routes.get(route.name, routes.QUIET))
            for route in routes.ordered(look, changes, "load")
        ],
        "missing": list(look.missing),
    }


def _worker(worker: Worker, change: Change) -> dict[str, Any]:
    entry, page, memory = worker.entry, worker.page, worker.memory
    return {
        "worker": entry.slot,
        "number": entry.number,
        "pid": entry.pid,
        "class": entry.kind,
        "generation": entry.generation,
        "phase": entry.phase,
        "age": entry.age,
        "note": entry.note,
        "busy": page.figures.get("in_flight") if page else None,
        "places": page.threads if page else None,
        "queued": page.figures.get("queued") if page else None,
        "oldest_wait": page.oldest_wait if page else None,
        "connections": page.figures.get("connections") if page else None,
        "sessions": worker.sessions,
        "rss": memory.rss if memory else None,
        "pss": memory.pss if memory else None,
        "uss": memory.uss if memory else None,
        **_change(change),
    }


def _mold(mold: Worker) -> dict[str, Any]:
    memory = mold.memory
    return {
        "pid": mold.entry.pid,
        "phase": mold.entry.phase,
        "age": mold.entry.age,
        "rss": memory.rss if memory else None,
        "pss": memory.pss if memory else None,
        "uss": memory.uss if memory else None,
    }


def _route(route: Route, change: RouteChange) -> dict[str, Any]:
    return {
        "route": route.name,
        "requests": route.requests,
        "errors": route.errors,
        "seconds": route.seconds,
        "requests_per_second": change.requests,
        "server_errors": change.server_errors,
        "load": change.load,
        "total": _times(change.total),
        "cpu": change.cpu,
        "blocked": change.blocked,
        "yielded": change.yielded,
        "delayed": change.delayed,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "requests_per_second": change.requests,
        "client_errors": change.client_errors,
        "server_errors": change.server_errors,
        "shed_per_second": change.shed,
        "cpu": change.cpu,
        "blocked": change.blocked,
        "total": _times(change.total),
        "queue": _times(change.queue),
        "gil": _times(change.gil),
    }


def _times(times: Times | None) -> dict[str, Any] | None:
    if times is None:
        return None
    return {"count": times.count, "p50": times.p50, "p95": times.p95, "p99": times.p99}
