"""Translates gunicornc's commands into requests of the control protocol, and the answers back."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from tricorn.arbiter.control.session import Answered, Frame, Json, Request
from tricorn.arbiter.policy.arguments import MAX_NUMBER
from tricorn.config import foreign
from tricorn.config.unavailable import UNAVAILABLE_BY_NAME
from tricorn.record import Record
from tricorn.unpatched import os

MAX_COMMAND = 256
"""Characters of a command; splitting it takes time."""
MAX_ARGS = 16

Result = dict[str, Any]


class Translation(Record):
    """A request of the control protocol, and what is made of its answer."""

    word: str
    arguments: Json
    convert: Callable[[Result], Json]
    """Makes gunicorn's data of the result."""
    refused: Json | None = None
    """The data if the request is refused; None: that is an error."""

    def back(self, answer: Json) -> Json:
        if answer["ok"] is True and isinstance(result := answer["result"], dict):
            return {"status": "ok", "data": self.convert(result)}
        if self.refused is not None and answer["kind"] == "refused":
            return {"status": "ok", "data": self.refused}
        return {"status": "error", "error": answer["error"]}


def translate(frame: Frame) -> Request | Answered:
    try:
        match _translate(frame):
            case Translation() as found:
                return Request(frame.id, found.word, found.arguments, found.back)
            case data:
                return Answered(frame.id, {"status": "ok", "data": data})
    except ValueError as error:  # in the words of gunicorn
        return Answered(frame.id, {"status": "error", "error": str(error)})


def _translate(frame: Frame) -> Translation | Json:
    extra = [str(each) for each in frame.args] if len(frame.args) <= MAX_ARGS else []
    command = frame.command.strip()
    if not command:
        raise ValueError("Empty command")
    if len(command) + sum(map(len, extra)) > MAX_COMMAND:
        raise ValueError("Invalid argument: the command is too long")
    try:
        words = [*shlex.split(command), *extra]
        if not words:
            raise ValueError("Empty command")
        return _command(words[0].lower(), words[1:])
    except ValueError as error:
        raise ValueError(f"Invalid argument: {error}") from None


def _command(word: str, rest: list[str]) -> Translation | Json:
    match word:
        case "show":
            if not rest:
                raise ValueError("Missing show target (all|workers|dirty|config|stats|listeners)")
            return _show(rest[0].lower())
        case "worker":
            return _worker(rest)
        case "dirty":
            if rest[:1] not in (["add"], ["remove"]):
                raise ValueError(f"Unknown dirty action: {rest[0]}" if rest else "Missing dirty action (add|remove)")
            return {"success": False, "error": "Dirty arbiter not running"}
        case "reload":
            return Translation("reload", {}, lambda _: {"status": "reloading"})
        case "reopen":
            return Translation("reopen", {}, lambda _: {"status": "reopening"})
        case "shutdown":
            mode = rest[0] if rest else "graceful"
            data: Json = {"status": "shutting_down", "mode": mode}
            return Translation("shutdown", {"quick": True} if mode == "quick" else {}, lambda _: data)
        case "help":
            return {"commands": dict(COMMANDS)}
    raise ValueError(f"Unknown command: {word}")


def _worker(rest: list[str]) -> Translation:
    if not rest:
        raise ValueError("Missing worker action (add|remove|kill)")
    action, given = rest[0].lower(), rest[1:2]
    match action:
        case "add":
            count = max(1, _number(given))
            return Translation("scale", {"workers": f"+{count}"}, lambda result: {"added": count, **_sizes(result)})
        case "remove":
            count = max(1, _number(given))  # gunicorn's: one is left
            return Translation("scale", {"workers": f"-{count}", "least": 1}, _removed)
        case "kill":
            if not given:
                raise ValueError("Missing PID for worker kill")
            pid = _number(given)
            unknown: Json = {"success": False, "error": f"Worker {pid} not found"}
            return Translation("kill", {"pid": pid}, lambda _: {"success": True, "killed": pid}, unknown)
    raise ValueError(f"Unknown worker action: {action}")


def _sizes(result: Result) -> Json:
    return {"previous": result["previous"], "total": result["workers"]}


def _removed(result: Result) -> Json:
    return {"removed": result["previous"] - result["workers"], **_sizes(result)}


def _number(given: list[str]) -> int:
    value = int(given[0][:20]) if given else 1
    if abs(value) > MAX_NUMBER:
        raise ValueError(f"{value} is too large a number")
    return value


def _show(target: str) -> Translation | Json:
    match target:
        case "all":
            return Translation("workers", {}, _all)
        case "workers":
            return Translation("workers", {}, _workers)
        case "dirty":
            return {"enabled": False, "pid": None, "workers": [], "apps": []}
        case "config":
            return Translation("config", {}, _config)
        case "stats":
            return Translation("stats", {}, _stats)
        case "listeners":
            return Translation("listeners", {}, _listeners)
    raise ValueError(f"Unknown show target: {target}")


def _all(result: Result) -> Json:
    workers = [{"type": "web", **row} for row in _rows(result)]
    for row in workers:
        row.pop("aborted")
    return {
        "arbiter": {"pid": os.getpid(), "type": "arbiter", "role": "master"},
        "web_workers": workers,
        "web_worker_count": len(workers),
        "dirty_arbiter": None,
        "dirty_workers": [],
        "dirty_worker_count": 0,
    }


def _workers(result: Result) -> Json:
    rows = _rows(result)
    return {"workers": rows, "count": len(rows)}


def _rows(result: Result) -> list[Json]:
    """Makes gunicorn's rows. There `booted` is false for all: its arbiter never learns."""
    found = [row for row in result["workers"] if row["slot"] is not None]
    return [
        {
            "pid": row["pid"],
            "age": row["nr"],
            "booted": row["served"],
            "aborted": row["signal"] == "SIGABRT",
            # It rests while nothing is in flight; gunicorn's own clients show None as "n/a".
            "last_heartbeat": row.get("heartbeat"),
        }
        for row in sorted(found, key=lambda row: row["nr"])
    ]


def _listeners(result: Result) -> Json:
    rows = [{key: row[key] for key in ("address", "fd", "type")} for row in result["listeners"]]
    return {"listeners": rows, "count": len(rows)}


def _stats(result: Result) -> Json:
    exits, reloads = result["workers_exited"], result["reloads"]
    return {
        "uptime": round(result["uptime"], 2),
        **{name: result[name] for name in ("pid", "workers_current", "workers_target", "workers_spawned")},
        "workers_killed": exits.get("killed", 0) + exits.get("timeout", 0),
        "reloads": reloads.get("committed", 0),
        "dirty_arbiter_pid": None,
    }


def _config(result: Result) -> Json:
    values = {name: foreign.as_gunicorn(name, record.default) for name, record in UNAVAILABLE_BY_NAME.items()}
    values |= {row["name"]: row["value"] for row in result["settings"]}
    plain = (str, int, float, list, dict, type(None))
    return {name: values[name] if isinstance(values[name], plain) else str(values[name]) for name in CONFIG}


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
"""The settings that gunicorn shows."""

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
