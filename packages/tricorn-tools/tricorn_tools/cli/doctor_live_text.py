"""Formats the report on a running server, and computes the shares of its workers' time. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tricorn.cli import ctl_text

WIDTH = 30
"""Characters of a bar."""
MOST_REQUESTS = 10
MOST_ROUTES = 10

WORK, BLOCKED = "loop_work_nanoseconds", "loop_blocked_nanoseconds"

Row = Mapping[str, Any]


def gauges(before: Sequence[Row], now: Sequence[Row], seconds: float) -> list[dict[str, Any]]:
    """Returns shares of each worker's time: `blocked` and `computed` of an event loop, else `busy` threads."""
    earlier = {row["nr"]: row.get("figures") or {} for row in before}
    found = []
    for row in now:
        figures, then = row.get("figures") or {}, earlier.get(row["nr"], {})
        gauge: dict[str, Any] = {name: row[name] for name in ("slot", "pid", "class", "state")}
        gauge |= {"in_flight": figures.get("in_flight"), "blocked": None, "computed": None, "busy": None}
        gauge["offload"] = _offload(figures) if figures.get("offload_calls") else None
        if figures.get(WORK) and seconds > 0:
            work, blocked = (
                max(0.0, min(1.0, (figures.get(name, 0) - then.get(name, 0)) / 1e9 / seconds))
                for name in (WORK, BLOCKED)
            )
            gauge |= {"blocked": round(blocked, 4), "computed": round(max(0.0, work - blocked), 4)}
        elif row.get("threads") and row["class"] in THREADS:
            gauge["busy"] = round(min(1.0, figures["in_flight"] / row["threads"]), 4)
        found.append(gauge)
    return found


def _offload(figures: Row) -> dict[str, float]:
    """Returns the counts of offloaded calls of a worker."""
    counts = {name: figures[f"offload_{name}"] for name in ("calls", "abandoned", "threads", "busy", "waiting")}
    return counts | {"seconds": round(figures["offload_nanoseconds"] / 1e9, 3)}


THREADS = ("sync", "gthread")
"""Classes whose requests have a thread each."""


def text(report: Row) -> str:
    blocks = [
        ctl_text.stalls(report),
        f"Routes since the start (CPU to DELAYED: shares of the time, measured in slower requests):\n{_routes(report)}",
        "\n".join(_bars(report["workers"])),
        "\n".join(_requests(report)),
    ]
    if report["stacks"]:
        blocks.append(ctl_text.text("stacks", {"workers": report["stacks"]}))
    return "\n\n".join(blocks)


def _routes(report: Row) -> str:
    return ctl_text.routes(report["routes"], MOST_ROUTES)


def _bars(workers: Sequence[Row]) -> Iterator[str]:
    yield "Workers (# blocked, = on CPU or waiting for one):"
    for row in workers:
        who = f"  {row['slot']} (pid {row['pid']}, {row['class']}, {row['state']})"
        if row["blocked"] is not None:
            shares = f"blocked {row['blocked'] * 100:.0f} %, work {(row['blocked'] + row['computed']) * 100:.0f} %"
            yield f"{who} [{_bar(row['blocked'], row['computed'])}] {shares}"
        elif row["busy"] is not None:
            yield f"{who} [{_bar(0.0, row['busy'])}] {row['busy'] * 100:.0f} % of threads busy"
        else:
            yield f"{who} no data yet"
    offloads = [row["offload"] for row in workers if row["offload"] is not None]
    if offloads:
        total = {name: sum(each[name] for each in offloads) for name in offloads[0]}
        yield (
            f"Offloaded calls: {total['calls']:,} ({total['seconds']:,.1f} s), {total['busy']} running in "
            f"{total['threads']} threads, {total['waiting']} waiting, {total['abandoned']} abandoned"
        )


def _bar(first: float, second: float) -> str:
    hashes = round(first * WIDTH)
    signs = min(WIDTH - hashes, round(second * WIDTH))
    return "#" * hashes + "=" * signs + "." * (WIDTH - hashes - signs)


def _requests(report: Row) -> Iterator[str]:
    running = report["requests"]
    if not running:
        yield "No running requests."
        return
    yield ctl_text.text("requests", {"requests": running[:MOST_REQUESTS], "count": report["count"]})
