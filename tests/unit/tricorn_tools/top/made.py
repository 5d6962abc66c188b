"""Looks that are made: a server with four workers, one of which is stuck."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tricorn.metrics.scoreboard import histogram_edges
from tricorn.record import replace
from tricorn_tools.top.look import Counted, Entry, Look, Memory, Page, Request, Route, Server, Worker

EDGES, GIL_EDGES = histogram_edges()
MIB = 1 << 20


def counted(
    requests: int = 0,
    *,
    cpu: float = 0.0,
    statuses: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0),
    total: Mapping[int, int] | None = None,
    queue: Mapping[int, int] | None = None,
    gil: Mapping[int, int] | None = None,
    **figures: int,
) -> Counted:
    """Histograms by the lower edge of a bucket, in nanoseconds."""
    histograms = {
        name: [(counts or {}).get(edge, 0) for edge in edges[:-1]]
        for name, counts, edges in (
            ("total", total, EDGES),
            ("queue", queue, EDGES),
            ("application", total, EDGES),
            ("gil", gil, GIL_EDGES),
        )
    }
    given = {"requests": requests, "cpu_nanoseconds": int(cpu * 1e9), "queue_full": 0, "queue_late": 0, "leaving": 0}
    return Counted({**given, **figures}, statuses, histograms)


def page(counts: Counted | None = None, *, threads: int = 8, requests: tuple[Request, ...] = (), **gauges: int) -> Page:
    known = counts or counted()
    figures = {"in_flight": 0, "queued": 0, "connections": 0, **known.figures, **gauges}
    return Page("serving", threads, figures, 0.0, known, requests)


def entry(number: int, **given: Any) -> Entry:
    fields: dict[str, Any] = {
        "number": number,
        "pid": 4711 + number,
        "slot": number,
        "page": number - 1,
        "kind": "gthread",
        "generation": 3,
        "phase": "serving",
        "age": 273_600.0,
    }
    return Entry(**{**fields, **given})


def server(**given: Any) -> Server:
    fields: dict[str, Any] = {
        "name": "shop",
        "version": "0.2.0",
        "pid": 4711,
        "generation": 3,
        "wanted": 4,
        "up": 273_600.0,
        "is_ready": True,
    }
    return Server(**{**fields, **given})


def look(at: float, *workers: Worker, totals: Counted | None = None, **given: Any) -> Look:
    rest = {name: given.pop(name) for name in ("missing", "reloads", "exits", "mold", "routes") if name in given}
    return Look(at, server(**given), workers, totals, **rest)


def busy_shop() -> tuple[Look, Look]:
    """The looks at the beginning and at the end of one second. Every number on the screen can be told apart."""
    quiet = tuple(Worker(entry(number), page(counted()), None) for number in (1, 2, 3, 4))
    before = look(100.0, *quiet, totals=counted())
    slow = Request(2, 62_000_000_000, 38.1, "GET /report?year=2025", "sending")
    export = Request(
        0,
        96_000_000_000,
        4.2,
        "POST /export/everything-that-there-is-in-this-shop-and-in-the-other-one-as-well",
        "call",
    )
    quick = Request(1, 99_900_000_000, 0.1, "GET /", "call")
    busy = (
        Worker(
            entry(1),
            page(
                counted(231, cpu=0.62, statuses=(0, 229, 0, 2, 0), total={2_500_000: 228, 40_000_000: 3}),
                in_flight=5,
                connections=412,
                requests=(quick,),
            ),
            Memory(182 * MIB, 61 * MIB, 43 * MIB),
        ),
        Worker(
            entry(2, age=5_400.0),
            page(
                counted(648, cpu=0.97, statuses=(0, 648, 0, 0, 0), total={750_000: 640, 7_500_000: 8}),
                in_flight=3,
                connections=1_204,
                requests=(export,),
            ),
            Memory(177 * MIB, 58 * MIB, 40 * MIB),
        ),
        Worker(
            entry(3, phase="retiring", note="1 stuck; successor boots"),
            page(
                counted(12, cpu=1.0, statuses=(0, 10, 0, 0, 2), total={3_000_000: 11, 250_000_000: 1}),
                in_flight=8,
                queued=3,
                connections=40,
                requests=(slow,),
            ),
            Memory(190 * MIB, 66 * MIB, 48 * MIB),
        ),
        Worker(entry(5, slot=4, generation=3, phase="booting", age=6.0), None, Memory(31 * MIB)),
    )
    totals = counted(
        891,
        cpu=2.59,
        statuses=(0, 887, 0, 2, 2),
        total={750_000: 640, 2_500_000: 239, 40_000_000: 11, 250_000_000: 1},
        queue={0: 880, 400_000: 11},
        gil={0: 890, 500_000: 1},
    )
    return before, look(101.0, *busy, totals=totals)


def route(name: str, requests: int, seconds: float, *, edge: int = 0, **given: Any) -> Route:
    """`edge`: the index of the bucket in which all its requests are."""
    buckets = [requests if index == edge else 0 for index in range(len(GIL_EDGES) - 1)]
    parts = {"told": 0.0, "cpu": 0.0, "blocked": 0.0, "yielded": 0.0, "delayed": 0.0, "errors": 0}
    return Route(name=name, requests=requests, seconds=seconds, buckets=buckets, **{**parts, **given})


def shop_of_routes() -> tuple[Look, Look]:
    """The same second, by route. `/new` came in it; `/quiet` had no request."""
    before, now = busy_shop()
    long = "/catalogue/{category}/{subcategory}/products/{product_id}/reviews/{review_id}/answers"
    earlier = (
        route("/report", 2_000, 3_600.0, edge=10, errors=2, told=3_600.0, cpu=1_800.0, blocked=900.0),
        route("/", 800_000, 640.0, edge=2),
        route(long, 12_345, 120.0, edge=4),
        route("/quiet", 3, 0.5, edge=8),
    )
    later = (
        route("/report", 2_012, 3_604.5, edge=10, errors=4, told=3_604.5, cpu=1_800.5, blocked=903.5),
        route("/", 800_831, 640.6, edge=2),
        route(long, 12_392, 120.3, edge=4),
        route("/new", 1, 0.05, edge=6),
        route("/quiet", 3, 0.5, edge=8),
    )
    return replace(before, routes=earlier), replace(now, routes=later)
