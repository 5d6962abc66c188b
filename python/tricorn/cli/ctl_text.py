"""Formats the results of `tricorn ctl` as text: tables, or a line for each value. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tricorn.metrics.scoreboard import histogram_edges, percentile

Result = Mapping[str, Any]


def text(word: str, result: Result) -> str:
    return printable(_text(word, result))


def printable(text: str) -> str:
    """Escapes control characters in text from clients and other users, so that a terminal does not interpret them."""
    return "".join(each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text)


def _text(word: str, result: Result) -> str:
    match word:
        case "workers":
            return table(WORKERS, (_worker(row) for row in result["workers"])) or "No workers."
        case "requests":
            rows = (
                (_call(row), row["pid"], f"{row['age']:.1f} s", row.get("phase"), row["text"])
                for row in result["requests"]
            )
            left = result["count"] - len(result["requests"])
            more = f"\n(and {left} more)" if left else ""
            return (table(("CALL", "PID", "AGE", "PHASE", "REQUEST"), rows) or "No requests.") + more
        case "routes":
            return routes(result)
        case "sessions":
            owners = ((row["slot"], row["pid"], row["sessions"]) for row in result["workers"])
            return table(("SLOT", "PID", "SESSIONS"), owners) or "Sessions do not stay with workers (affinity)."
        case "listeners":
            listeners = [(row["address"], row["type"], "") for row in result["listeners"]]
            return table(
                ("ADDRESS", "TYPE", ""), listeners + [(r["address"], r["type"], "admin") for r in result["admin"]]
            )
        case "stalls":
            return stalls(result)
        case "stacks":
            return "\n".join(line for worker in result["workers"] for line in _stacks(worker))
        case "config":
            return "\n".join(f"{row['name']} = {row['value']}  ({row['origin']})" for row in result["settings"])
        case "event":
            rest = " ".join(
                f"{name}={value}" for name, value in result.items() if name != "event" and value is not None
            )
            return f"{result.get('event')} {rest}".rstrip()
    return "\n".join(_lines(result)) or "OK"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Aligns rows in columns. Empty if there are no rows."""
    cells = [["-" if value is None else str(value) for value in row] for row in rows]
    if not cells:
        return ""
    widths = [max(len(row[column]) for row in [head, *cells]) for column in range(len(head))]
    lines = ("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in [head, *cells])
    return "\n".join(line.rstrip() for line in lines)


def routes(result: Result, most: int | None = None) -> str:
    """Renders the cost of each route: its total time, and the shares of it for the requests that measured them."""
    if not result["counted"]:
        return "Route metrics are disabled (route_metrics = 0)."
    rows = result["routes"]
    whole = sum(row["seconds"] for row in rows)
    if not rows:
        return "No requests."
    left = len(rows) - (len(rows) if most is None else most)
    more = f"\n(and {left} more: tricorn ctl routes)" if left > 0 else ""
    return table(ROUTES, (_route(row, whole) for row in rows[:most])) + more


ROUTES = ("ROUTE", "REQUESTS", "5XX", "TIME", "SHARE", "MEAN", "P95", "CPU", "BLOCKED", "YIELDED", "DELAYED")


def _route(row: Result, whole: float) -> tuple[object, ...]:
    told = row["told_seconds"]
    parts = (row[f"{name}_seconds"] for name in ("cpu", "blocked", "yielded", "delayed"))
    return (
        row["route"],
        row["requests"],
        row["errors"],
        f"{row['seconds']:.1f} s",
        f"{row['seconds'] / whole * 100:.0f} %" if whole else None,
        f"{row['seconds'] / row['requests'] * 1000:.1f} ms",
        f"{percentile(row['buckets'], histogram_edges()[1], 0.95) * 1000:.1f} ms",
        *(f"{part / told * 100:.0f} %" if told else None for part in parts),
    )


def stalls(result: Result) -> str:
    """Renders a block for each kind of stall: its cost, its place, the cause and the fix."""
    if not result["stalls"]:
        since = "in the last minute" if result["since"] == "minute" else "since the start"
        why = " (not monitored: doctor = off)" if result.get("doctor") == "off" else ""
        return f"No stalls {since}{why}."
    return "\n\n".join(_stall(number, row) for number, row in enumerate(result["stalls"], 1))


def _stall(number: int, row: Result) -> str:
    total, package = row["total"], row["package"]
    place = (
        f"{row['file']}:{row['line'] or '?'} in {row['function']}" if row["file"] else "(no line of the application)"
    )
    library = " ".join(filter(None, (row["library"], row["library_version"])))
    if row["c_function"]:
        library += f" ({row['c_function']})"
    if package is not None:
        library = f"{library} of {package['name']} {package['version']}".strip()
    is_wait = row["waiting"] > 0
    # The victims are shown apart from the line that keeps them waiting.
    is_of_others = is_wait or row["verdict"] == "GIL_VICTIM"
    blocked = "" if is_wait and row["pool"] else f", blocked {row['blocked'] * 100:.0f} %"
    lines = (
        f"{number}. {total['request_seconds']:.1f} request-seconds: {_times(total['count'])}, "
        f"{total['seconds']:.1f} s. "
        f"{row['verdict']}{blocked}",
        f"   {row['sentence']}" if is_of_others else "",
        f"   {place}: {row['source']}" if row["source"] else f"   {place}",
        f"   {library}" if library else "",
        f"   Fix: {row['cure']} ({row['link']})",
    )
    return "\n".join(filter(None, lines))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def duration(seconds: float) -> str:
    """Formats a duration with its two largest units: `3 d 4 h`, `12 s`."""
    left = int(seconds)
    parts: list[str] = []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


WORKERS = ("SLOT", "PID", "CLASS", "GEN", "STATE", "BUSY", "QUEUE", "REQUESTS", "CONN", "AGE", "NOTE")


def _worker(row: Result) -> tuple[object, ...]:
    figures = row.get("figures") or {}
    busy = f"{figures['in_flight']}/{row['threads']}" if figures else None
    stuck = f"{row['stuck']} stuck; " if row["stuck"] else ""
    counts = (figures.get("queued"), figures.get("requests"), figures.get("connections"))
    note = stuck + (row["note"] or "")
    who = row["slot"], row["pid"], row.get("class"), row["generation"], row["state"]
    return *who, busy, *counts, duration(row["age"]), note


def _call(row: Result) -> str:
    """Returns the address of a request for `cancel`; the slot alone if the server has no such command."""
    return f"{row['slot']}.{row['place']}@{row['start']}" if "start" in row else str(row["slot"])


def _stacks(worker: Result) -> Iterable[str]:
    is_idle = not (worker["threads"] or worker.get("waiting"))
    idle = ": idle" if is_idle else ""
    yield f"Worker {worker['slot']} (pid {worker['pid']}){idle}"
    for request in worker["requests"]:
        yield f"  {request['age']:.1f} s  {request['text']}"
    for thread in worker["threads"]:
        yield f"  {'Main thread' if thread['main'] else 'Thread'} {thread['name'] or thread['thread']}:"
        yield from (f"    {frame}" for frame in thread["stack"])
    for each in worker.get("waiting") or ():
        yield f"  {_waiting(worker, each)}:"
        yield from (f"    {frame}" for frame in each["stack"])
    if worker.get("note"):
        yield f"  {worker['note']}"


def _waiting(worker: Result, each: Result) -> str:
    what = "Task" if each["of"] == "task" else "Greenlet"
    how = ", running" if each["running"] else ""
    if each["place"] is None:
        return f"{what} {each['name']}{how}"
    return f"{what} of {worker['slot']}.{each['place']}@{each['start']} {each['text'] or ''}{how}"


def _lines(result: Result, indent: str = "") -> Iterable[str]:
    for name, value in result.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from _lines(value, indent + "  ")
        elif name == "uptime":
            yield f"{indent}{name}: {duration(value)}"
        else:
            yield f"{indent}{name}: {_shown(value)}"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "-" if value is None else str(value)
