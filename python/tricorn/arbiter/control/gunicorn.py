"""Translates gunicornc's commands into requests of the control protocol, and the answers back."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from tricorn.arbiter.control.session import Answered, Frame, Json, Request
from tricorn.arbiter.policy.arguments import MAX_NUMBER
from tricorn.config import foreign
from tricorn.config.unavailable import UNAVAILABLE_BY_NAME
from tricorn.unpatched import os

MAX_COMMAND = 256
"""Characters of a command; splitting it takes time."""
MAX_ARGS = 16

Convert = Callable[[Json], Json]


def translate(frame: Frame) -> Request | Answered:
    try:
        return _translate(frame)
    except ValueError as error:  # in the words of gunicorn
        return Answered(frame.id, {"status": "error", "error": str(error)})


def _translate(frame: Frame) -> Request | Answered:
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
        return _command(frame.id, words[0].lower(), words[1:])
    except ValueError as error:
        raise ValueError(f"Invalid argument: {error}") from None


def _command(identity: int | str | None, word: str, rest: list[str]) -> Request | Answered:
    match word:
        case "show":
            if not rest:
                raise ValueError("Missing show target (all|workers|dirty|config|stats|listeners)")
            return _show(identity, rest[0].lower())
        case "worker":
            return _worker(identity, rest)
        case "dirty":
            if rest[:1] not in (["add"], ["remove"]):
                raise ValueError(f"Unknown dirty action: {rest[0]}" if rest else "Missing dirty action (add|remove)")
            return Answered(identity, _ok({"success": False, "error": "Dirty arbiter not running"}))
        case "reload":
            return _request(identity, "reload", {}, lambda _: {"status": "reloading"})
        case "reopen":
            return _request(identity, "reopen", {}, lambda _: {"status": "reopening"})
        case "shutdown":
            mode = rest[0] if rest else "graceful"
            convert: Convert = lambda _: {"status": "shutting_down", "mode": mode}  # noqa: E731
            return _request(identity, "shutdown", {"quick": True} if mode == "quick" else {}, convert)
        case "help":
            return Answered(identity, _ok({"commands": dict(COMMANDS)}))
    raise ValueError(f"Unknown command: {word}")


def _request(identity: int | str | None, word: str, arguments: Json, convert: Convert) -> Request:
    def translate_back(answer: Json) -> Json:
        result = answer.get("result")
        if answer["ok"] is True and isinstance(result, dict):
            return _ok(convert(result))
        return {"status": "error", "error": answer["error"]}

    return Request(identity, word, arguments, translate_back)


def _ok(data: Json) -> Json:
    return {"status": "ok", "data": data}


def _worker(identity: int | str | None, rest: list[str]) -> Request:
    if not rest:
        raise ValueError("Missing worker action (add|remove|kill)")
    action, given = rest[0].lower(), rest[1:2]
    match action:
        case "add":
            count = max(1, _number(given))
            return _request(identity, "scale", {"workers": f"+{count}"}, lambda result: _scaled(result, count))
        case "remove":
            count = max(1, _number(given))  # gunicorn's: one is left
            return _request(identity, "scale", {"workers": f"-{count}", "least": 1}, lambda result: _scaled(result, 0))
        case "kill":
            if not given:
                raise ValueError("Missing PID for worker kill")
            return _kill(identity, _number(given))
    raise ValueError(f"Unknown worker action: {action}")


def _scaled(result: Json, added: int) -> Json:
    before, after = result["previous"], result["workers"]
    if added:
        return {"added": added, "previous": before, "total": after}
    return {"removed": int(str(before)) - int(str(after)), "previous": before, "total": after}


def _kill(identity: int | str | None, pid: int) -> Request:
    request = _request(identity, "kill", {"pid": pid}, lambda _: {"success": True, "killed": pid})

    def translate_back(answer: Json) -> Json:
        if answer.get("kind") == "refused":
            return _ok({"success": False, "error": f"Worker {pid} not found"})
        return request.translate(answer)

    return Request(identity, request.word, request.arguments, translate_back)


def _number(given: list[str]) -> int:
    value = int(given[0][:20]) if given else 1
    if abs(value) > MAX_NUMBER:
        raise ValueError(f"{value} is too large a number")
    return value


def _show(identity: int | str | None, target: str) -> Request | Answered:
    match target:
        case "all":
            return _request(identity, "workers", {}, _all)
        case "workers":
            return _request(identity, "workers", {}, _workers)
        case "dirty":
            return Answered(identity, _ok({"enabled": False, "pid": None, "workers": [], "apps": []}))
        case "config":
            return _request(identity, "config", {}, _config)
        case "stats":
            return _request(identity, "stats", {}, _stats)
        case "listeners":
            return _request(identity, "listeners", {}, _listeners)
    raise ValueError(f"Unknown show target: {target}")


def _all(result: Json) -> Json:
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


def _workers(result: Json) -> Json:
    rows = _rows(result)
    return {"workers": rows, "count": len(rows)}


def _rows(result: Json) -> list[Json]:
    """Makes gunicorn's rows. There `booted` is false for all: its arbiter never learns."""
    found = [row for row in _list(result, "workers") if row["slot"] is not None]
    return [
        {
            "pid": row["pid"],
            "age": row["nr"],
            "booted": row["served"],
            "aborted": row["signal"] == "SIGABRT",
            # It rests while nothing is in flight; gunicorn's own clients show None as "n/a".
            "last_heartbeat": row.get("heartbeat"),
        }
        for row in sorted(found, key=lambda row: int(str(row["nr"])))
    ]


def _listeners(result: Json) -> Json:
    rows = [{key: row[key] for key in ("address", "fd", "type")} for row in _list(result, "listeners")]
    return {"listeners": rows, "count": len(rows)}


def _stats(result: Json) -> Json:
    exits, reloads = _dict(result, "workers_exited"), _dict(result, "reloads")
    return {
        "uptime": round(float(str(result["uptime"])), 2),
        **{name: result[name] for name in ("pid", "workers_current", "workers_target", "workers_spawned")},
        "workers_killed": exits.get("killed", 0) + exits.get("timeout", 0),
        "reloads": reloads.get("committed", 0),
        "dirty_arbiter_pid": None,
    }


def _config(result: Json) -> Json:
    values = {name: foreign.as_gunicorn(name, record.default) for name, record in UNAVAILABLE_BY_NAME.items()}
    values |= {str(row["name"]): row["value"] for row in _list(result, "settings")}
    plain = (str, int, float, list, dict, type(None))
    return {name: values[name] if isinstance(values[name], plain) else str(values[name]) for name in CONFIG}


def _dict(result: Json, name: str) -> dict[str, int]:
    found = result[name]
    return found if isinstance(found, dict) else {}


def _list(result: Json, name: str) -> list[Json]:
    found = result[name]
    return found if isinstance(found, list) else []


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
