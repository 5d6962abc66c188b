"""`tricorn ctl memory`: memory of the processes of a server, from /proc. The server is asked for their pids only.

The kernel walks all page tables of a process for its PSS: here the client waits for that, and not the arbiter.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tricorn import process_memory
from tricorn.control.client import Control

NOTHING: dict[str, int | None] = dict.fromkeys(("pss", "uss", "shared", "rss"))


def look(control: Control, proc: Path = Path("/proc")) -> dict[str, Any]:
    """Returns bytes for each process; None where they cannot be read: another user's, or another namespace of pids."""
    status = control.ask("status", brief=True)
    workers = control.ask("workers", brief=True)["workers"]
    arbiter, mold = status["pid"], status.get("mold")
    rows: list[dict[str, Any]] = [{"process": "arbiter", "slot": None, "pid": arbiter}]
    rows += [{"process": "mold", "slot": None, "pid": mold["pid"]}] if mold else []
    rows += [{"process": "worker", "slot": row["slot"], "pid": row["pid"]} for row in workers]
    children = {row["pid"] for row in rows[1:] if row["pid"] and _parent(proc, row["pid"]) == arbiter}
    known = children | ({arbiter} if children else set())
    rows = [row | (memory(proc, row["pid"]) if row["pid"] in known else NOTHING) for row in rows]
    return {"processes": rows, "pss": sum(row["pss"] or 0 for row in rows)}


def memory(proc: Path, pid: int) -> dict[str, int | None]:
    try:
        found = process_memory.read(pid, proc)
    except OSError:
        return NOTHING
    return NOTHING if found is None else {name: getattr(found, name) for name in NOTHING}


def rows_of(result: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    """Formats the processes, and the sum of their PSS: what the server has in memory."""
    for row in result["processes"]:
        yield row["process"], row["slot"], row["pid"], *(_mebibytes(row[key]) for key in NOTHING)
    yield "all", None, None, _mebibytes(result["pss"]), None, None, None


def _mebibytes(size: int | None) -> str | None:
    return None if size is None else f"{size / 2**20:.1f} MiB"


def _parent(proc: Path, pid: int) -> int | None:
    try:
        stat = (proc / str(pid) / "stat").read_text(errors="replace")
        return int(stat.rpartition(")")[2].split()[1])  # proc_pid_stat(5): the name may have parentheses in it
    except (OSError, ValueError, IndexError):
        return None
