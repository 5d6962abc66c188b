"""Routes as words: a row of cells for each, and the orders in which they may stand."""

from __future__ import annotations

from collections.abc import Callable

from tricorn.record import Record
from tricorn_tools.top import figures
from tricorn_tools.top.change import Changes, RouteChange
from tricorn_tools.top.look import Look, Route
from tricorn_tools.top.table import Cell


class RouteColumn(Record):
    title: str
    width: int
    cell: Callable[[Route, RouteChange, float], Cell]
    """Renders a cell from a route, its change, and the load of all routes."""


def _plain(text: Callable[[Route, RouteChange], str]) -> Callable[[Route, RouteChange, float], Cell]:
    return lambda route, change, _: Cell(text(route, change))


def _errors(_: Route, change: RouteChange, __: float) -> Cell:
    share = change.server_errors
    return Cell(figures.percent(share), "bad" if share is not None and share > 0.01 else "")


def _share(_: Route, change: RouteChange, load: float) -> Cell:
    return Cell(figures.percent(None if change.load is None or not load else change.load / load))


def _blocked(_: Route, change: RouteChange, __: float) -> Cell:
    blocked = change.blocked
    return Cell(figures.percent(blocked), "warn" if blocked is not None and blocked > 0.5 else "")


def _rate(_: Route, change: RouteChange) -> str:
    return figures.NOTHING if change.requests is None else figures.count(change.requests)


def _load(_: Route, change: RouteChange) -> str:
    return figures.NOTHING if change.load is None else f"{min(change.load, 9999.9):.1f}"


COLUMNS = (
    RouteColumn("REQ/S", 5, _plain(_rate)),
    RouteColumn("5XX", 5, _errors),
    RouteColumn("P50", 5, _plain(lambda _, change: figures.milliseconds(change.total.p50 if change.total else None))),
    RouteColumn("P95", 5, _plain(lambda _, change: figures.milliseconds(change.total.p95 if change.total else None))),
    RouteColumn("LOAD", 6, _plain(_load)),
    RouteColumn("SHARE", 5, _share),
    RouteColumn("CPU", 5, _plain(lambda _, change: figures.percent(change.cpu))),
    RouteColumn("BLOCK", 5, _blocked),
    RouteColumn("TOTAL", 5, _plain(lambda route, _: figures.count(route.requests))),
    RouteColumn("TIME", 5, _plain(lambda route, _: figures.span(route.seconds))),
)
"""Columns from left to right; the rightmost are left out first. The name takes the remaining room."""
NAME_ROOM = 20
"""Columns are left out where fewer characters than these are left for names."""

SORTS: dict[str, Callable[[Route, RouteChange], float]] = {
    "load": lambda _, change: -(change.load or 0),
    "req/s": lambda _, change: -(change.requests or 0),
    "p95": lambda _, change: -(change.total.p95 if change.total else 0),
    "5xx": lambda _, change: -(change.server_errors or 0),
    "time": lambda route, _: -route.seconds,
}
"""Sort orders by name, in the order in which the key cycles through them."""

QUIET = RouteChange()


def ordered(look: Look, changes: Changes, sort: str) -> list[Route]:
    """Sorts routes; ties are sorted by the time since the start."""
    key = SORTS[sort]
    found = look.routes or ()
    return sorted(found, key=lambda route: (key(route, changes.routes.get(route.name, QUIET)), -route.seconds))


def load(changes: Changes) -> float:
    """Returns the load of all routes."""
    return sum(change.load or 0.0 for change in changes.routes.values())


def fitting(width: int) -> list[RouteColumn]:
    kept: list[RouteColumn] = []
    used = 0
    for column in COLUMNS:
        used += column.width + 1
        if used + NAME_ROOM > width:
            break
        kept.append(column)
    return kept
