"""gunicorn's words, as `gunicornc` sends them, and the shapes of their answers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from signal import Signals
from typing import TYPE_CHECKING

from tricorn.arbiter.control import report
from tricorn.arbiter.control.session import Request
from tricorn.arbiter.control.words import MOST_NUMBER
from tricorn.arbiter.policy.state import State
from tricorn.arbiter.policy.wishes import Kill, ReloadAll, Reopen, Scale, Shutdown, Wish
from tricorn.arbiter.policy.worker import Leaving
from tricorn.config import foreign
from tricorn.record import Record

if TYPE_CHECKING:
    from tricorn.arbiter.effects import Effects

Json = dict[str, object]

MOST_COMMAND = 256
"""Characters of a command; splitting it takes time."""


class Known(Record):
    """What can be answered at once."""

    data: Json


class Wanted(Record):
    wish: Wish
    shape: Callable[[Mapping[str, object]], Json]
    """gunicorn's answer, of ours."""


def meaning(request: Request, state: State, effects: Effects, now: float) -> Known | Wanted:
    """Raises ValueError with the words of gunicorn."""
    args = request.arguments.get("args")
    extra = [str(each) for each in args] if isinstance(args, list) and len(args) <= MOST_ARGS else []
    command = request.word.strip()
    if not command:
        raise ValueError("Empty command")
    if len(command) + sum(map(len, extra)) > MOST_COMMAND:
        raise ValueError("Invalid argument: the command is too long")
    try:
        words = [*shlex.split(command), *extra]
        if not words:
            raise ValueError("Empty command")
        return _meaning(words[0].lower(), words[1:], state, effects, now)
    except ValueError as error:
        raise ValueError(f"Invalid argument: {error}") from None


MOST_ARGS = 16


def _meaning(word: str, rest: list[str], state: State, effects: Effects, now: float) -> Known | Wanted:
    match word:
        case "show":
            if not rest:
                raise ValueError("Missing show target (all|workers|dirty|config|stats|listeners)")
            return Known(_show(rest[0].lower(), state, effects, now))
        case "worker":
            return _worker(rest, state, effects)
        case "dirty":
            if rest[:1] not in (["add"], ["remove"]):
                raise ValueError(f"Unknown dirty action: {rest[0]}" if rest else "Missing dirty action (add|remove)")
            return Known({"success": False, "error": "Dirty arbiter not running"})
        case "reload":
            return Wanted(ReloadAll(), lambda result: {"status": "reloading"})
        case "reopen":
            return Wanted(Reopen(), lambda result: {"status": "reopening"})
        case "shutdown":
            mode = rest[0] if rest else "graceful"
            return Wanted(Shutdown(mode == "quick"), lambda result: {"status": "shutting_down", "mode": mode})
        case "help":
            return Known({"commands": dict(COMMANDS)})
    raise ValueError(f"Unknown command: {word}")


def _worker(rest: list[str], state: State, effects: Effects) -> Known | Wanted:
    if not rest:
        raise ValueError("Missing worker action (add|remove|kill)")
    action, given = rest[0].lower(), rest[1:2]
    before = state.target
    match action:
        case "add":
            count = max(1, _number(given))
            return Wanted(
                Scale(by=count),
                lambda result: {"added": count, "previous": result["previous"], "total": result["workers"]},
            )
        case "remove":
            target = max(1, before - max(1, _number(given)))  # gunicorn's: one is left
            return Wanted(Scale(target), lambda _: {"removed": before - target, "previous": before, "total": target})
        case "kill":
            if not given:
                raise ValueError("Missing PID for worker kill")
            pid = _number(given)
            found = next((handle.nr for handle in effects.processes.handles.values() if handle.pid == pid), None)
            if found is None:
                return Known({"success": False, "error": f"Worker {pid} not found"})
            return Wanted(Kill(found), lambda result: {"success": True, "killed": pid})
    raise ValueError(f"Unknown worker action: {action}")


def _number(given: list[str]) -> int:
    value = int(given[0][:20]) if given else 1
    if abs(value) > MOST_NUMBER:
        raise ValueError(f"{value} is too large a number")
    return value


def _show(target: str, state: State, effects: Effects, now: float) -> Json:
    match target:
        case "all":
            workers = [{"type": "web", **row} for row in _workers(state, effects)]
            for row in workers:
                row.pop("aborted")
            return {
                "arbiter": {"pid": effects.server.pid, "type": "arbiter", "role": "master"},
                "web_workers": workers,
                "web_worker_count": len(workers),
                "dirty_arbiter": None,
                "dirty_workers": [],
                "dirty_worker_count": 0,
            }
        case "workers":
            rows = _workers(state, effects)
            return {"workers": rows, "count": len(rows)}
        case "dirty":
            return {"enabled": False, "pid": None, "workers": [], "apps": []}
        case "config":
            return _config(effects)
        case "stats":
            return _stats(state, effects, now)
        case "listeners":
            found = effects.generation.listeners
            shown = [{key: each[key] for key in ("address", "fd", "type")} for each in map(report.listener, found)]
            return {"listeners": shown, "count": len(shown)}
    raise ValueError(f"Unknown show target: {target}")


def _workers(state: State, effects: Effects) -> list[Json]:
    """In gunicorn `booted` is false for all: its arbiter never learns."""
    rows: list[Json] = []
    for handle in effects.processes.handles.values():
        worker = state.workers.get(handle.nr)
        seen = handle.snapshot()
        aborted = worker is not None and isinstance(worker.phase, Leaving) and worker.phase.sent_signal is _ABORT
        rows.append(
            {
                "pid": handle.pid,
                "age": handle.worker.age,
                "booted": worker is not None and worker.served_since is not None,
                "aborted": aborted,
                # It rests while nothing is in flight; gunicorn's own clients show None as "n/a".
                "last_heartbeat": None if seen is None else report.heartbeat_age(seen),
            }
        )
    return rows


def _stats(state: State, effects: Effects, now: float) -> Json:
    return {
        "uptime": round(now - effects.began, 2),
        "pid": effects.server.pid,
        "workers_current": len(effects.processes.handles),
        "workers_target": state.target,
        "workers_spawned": effects.server.worker_age,
        "workers_killed": effects.exits["killed"] + effects.exits["timeout"],
        "reloads": effects.reloads["committed"],
        "dirty_arbiter_pid": None,
    }


def _config(effects: Effects) -> Json:
    config = effects.generation.config
    shown: Json = {}
    for name in CONFIG:
        value = foreign.as_gunicorn(name, getattr(config, name))
        shown[name] = value if isinstance(value, (str, int, float, list, dict, type(None))) else str(value)
    return shown


_ABORT = Signals.SIGABRT

CONFIG = (
    "bind",
    "workers",
    "worker_class",
    "threads",
    "timeout",
    "graceful_timeout",
    "keepalive",
    "max_requests",
    "max_requests_jitter",
    "worker_connections",
    "preload_app",
    "daemon",
    "pidfile",
    "proc_name",
    "reload",
    "dirty_workers",
    "dirty_apps",
    "dirty_timeout",
    "control_socket",
    "control_socket_disable",
)
"""What gunicorn shows."""

COMMANDS = {
    "show all": "Show all processes (arbiter and workers)",
    "show workers": "List HTTP workers with their status",
    "show dirty": "List dirty workers and apps: there are none",
    "show config": "Show the settings that gunicorn shows",
    "show stats": "Show server statistics",
    "show listeners": "Show bound sockets",
    "worker add [N]": "Start N more workers (default 1)",
    "worker remove [N]": "Have N workers less (default 1)",
    "worker kill <PID>": "Gracefully end one worker, which is replaced",
    "reload": "Graceful reload (HUP)",
    "reopen": "Reopen log files (USR1)",
    "shutdown [graceful|quick]": "End the server (TERM/INT)",
    "help": "Show this help message",
}
