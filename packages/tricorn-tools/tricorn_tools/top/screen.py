"""The screen: lines of texts with styles, of a given width and height. No line is longer, none wraps."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from tricorn.record import Record
from tricorn_tools.top import routes, table
from tricorn_tools.top.change import UNKNOWN, Change, Changes
from tricorn_tools.top.keys import Mark, Rows, View, mark_of
from tricorn_tools.top.look import Look, Worker
from tricorn_tools.top.table import Cell, Column, Running

KEYS = (
    "? help",
    "q quit",
    "Enter stacks",
    "d drain",
    "k cancel",
    "+ - scale",
    "R reload",
    "s sort",
    "r requests",
    "l routes",
    "↑↓ select",
)
READ_ONLY_KEYS = ("? help", "q quit", "(read-only)", "Enter stacks", "s sort", "r requests", "l routes", "↑↓ select")
ROUTES_KEYS = ("? help", "q quit", "l workers", "s sort", "+ - scale", "R reload", "↑↓ scroll")
READ_ONLY_ROUTES_KEYS = ("? help", "q quit", "(read-only)", "l workers", "s sort", "↑↓ scroll")
PANE_KEYS = ("q quit", "Esc back", "↑↓ scroll")
SMALLEST = (40, 12)
MOST_SAID = 4
"""Lines of a message."""
WIDE = 200
"""Width for output that is not limited: room for all columns."""
_GAP = 1


T = TypeVar("T")


class Span(NamedTuple):
    text: str
    style: str = ""
    """`bold`, `head`, `chosen`, `bad`, `warn` or nothing."""


Line = tuple[Span, ...]


class Scene(Record):
    """All that a screen shows."""

    look: Look
    changes: Changes
    view: View


def rows_of(scene: Scene) -> Rows:
    look, view = scene.look, scene.view
    least = 0.0 if view.shows_all else table.LONG
    shown = routes.ordered(look, scene.changes, view.route_sort) if view.shows_routes else ()
    return Rows(table.ordered(look, scene.changes, view.sort), table.running(look, least), shown)


def render(scene: Scene, width: int, height: int) -> list[Line]:
    """Renders as many lines as the screen has."""
    if width < SMALLEST[0] or height < SMALLEST[1]:
        lines: list[Line] = [(Span(f"needs {SMALLEST[0]} x {SMALLEST[1]}"),)]
    else:
        view, rows = scene.view, rows_of(scene)
        lines = [*_title(scene.look, width), *flow(table.summary(scene.look, scene.changes), width)]
        bottom = _bottom(scene, rows, width)
        room = height - len(lines) - len(bottom)
        middle = _pane(view, room) if view.pane else _middle(scene, rows, width, room)
        lines += [*middle, *[()] * (room - len(middle)), *bottom]
    return [_cut(line, width) for line in lines[:height]]


def plain(scene: Scene, width: int | None) -> list[str]:
    """Renders without keys and styles, for a pipe or a dumb terminal. Without a width nothing is left out."""
    rows = rows_of(scene)
    room = width or 10_000
    lines = [*flow(table.headline(scene.look), room, " · "), *flow(table.summary(scene.look, scene.changes), room)]
    if scene.view.shows_routes:
        lines += _routes(scene, rows, width or WIDE)
    else:
        room = width or WIDE
        lines += [_head(scene, room), *_rows(rows.workers, scene, room), *_mold(scene, room)]
    if rows.requests and not scene.view.shows_routes:
        lines += [(Span(_requests_title(scene.view)),), *[_request_line(one, None) for one in rows.requests]]
    lines += [(Span(sentence),) for sentence in scene.look.missing]
    return ["".join(span.text for span in (_cut(line, width) if width else line)).rstrip() for line in lines]


def flow(cells: Iterable[Cell], width: int, between: str = "   ") -> list[Line]:
    """Cells one after another, on as many lines as they take; none is divided."""
    lines: list[list[Span]] = []
    used = 0
    for cell in cells:
        if not lines or used + len(between) + len(cell.text) > width:
            lines.append([Span(cell.text, cell.mark)])
            used = len(cell.text)
        else:
            lines[-1] += [Span(between), Span(cell.text, cell.mark)]
            used += len(between) + len(cell.text)
    return [tuple(line) for line in lines]


def _title(look: Look, width: int) -> list[Line]:
    lines = flow(table.headline(look), width, " · ")
    return [tuple(Span(span.text, span.style or "bold") for span in line) for line in lines]


def _middle(scene: Scene, rows: Rows, width: int, room: int) -> list[Line]:
    """The workers, then the requests: these have a third of the room, and what the workers leave."""
    sentences: list[Line] = [(Span(sentence, "warn"),) for sentence in scene.look.missing[: max(room - 3, 0)]]
    room -= len(sentences)
    if scene.view.shows_routes:
        head, *lines = _routes(scene, rows, width)
        return [head, *_scrolled(lines, scene.view.scroll, room - 1), *sentences]
    wanted = len(rows.requests) + 1 if rows.requests else 0
    mold = _mold(scene, width)
    room -= len(mold)
    for_requests = min(wanted, max(room - len(rows.workers) - 1, room // 3))
    at = next((index for index, one in enumerate(rows.workers) if scene.view.mark == Mark(one.entry.number)), 0)
    workers = window(rows.workers, at, room - for_requests - 1, lambda shown: _rows(shown, scene, width))
    return [_head(scene, width), *workers, *mold, *_requests(scene.view, rows.requests, for_requests), *sentences]


def window(things: Sequence[T], at: int, room: int, lines: Callable[[Sequence[T]], list[Line]]) -> list[Line]:
    """The lines of as many as there is room for, with this index among them; the last tells how many are missing."""
    if len(things) <= room:
        return lines(things)
    shown = max(room - 1, 0)
    start = min(max(0, at - shown + 1), len(things) - shown)
    rest: Line = (Span(f"    {len(things) - shown} more"),)
    return [*lines(things[start : start + shown]), rest][: max(room, 0)]


def _scrolled(lines: Sequence[Line], start: int, room: int) -> list[Line]:
    """Returns the lines from `start` on; the last one tells how many are missing."""
    shown = list(lines[start : start + room])
    more = len(lines) - start - len(shown)
    return [*shown[:-1], (Span(f"    {more + 1} more"),)] if more > 0 and shown else shown


def _routes(scene: Scene, rows: Rows, width: int) -> list[Line]:
    """A head, and a line for each."""
    columns, load = routes.fitting(width), routes.load(scene.changes)
    head = "".join(f"{column.title:>{column.width}}" + " " * _GAP for column in columns)
    lines: list[Line] = [(Span(f"{head}ROUTE".ljust(width), "head"),)]
    for route in rows.routes:
        change = scene.changes.routes.get(route.name, routes.QUIET)
        spans: list[Span] = []
        for column in columns:
            cell = column.cell(route, change, load)
            spans += [Span(cell.text[: column.width].rjust(column.width), cell.mark), Span(" " * _GAP)]
        lines.append((*spans, Span(route.name)))
    if scene.look.routes == ():
        lines.append((Span("No requests."),))
    return lines


def _head(scene: Scene, width: int) -> Line:
    columns, note_room = fitting(table.columns(scene.look, scene.changes), width)
    head = "".join(_aligned(column.title, column) + " " * _GAP for column in columns)
    return (Span(f"{head}{'NOTE' if note_room else ''}".ljust(width), "head"),)


def _rows(workers: Sequence[Worker], scene: Scene, width: int) -> list[Line]:
    columns, note_room = fitting(table.columns(scene.look, scene.changes), width)
    lines: list[Line] = []
    for worker in workers:
        line = list(_row(worker, scene.changes.workers[worker.entry.number], columns))
        if note_room:
            line.append(Span(worker.entry.note, "warn"))
        lines.append(_chosen(line, width) if scene.view.mark == Mark(worker.entry.number) else tuple(line))
    return lines


def _mold(scene: Scene, width: int) -> list[Line]:
    """A line below the workers, which cannot be chosen: nothing can be asked of it."""
    mold = scene.look.mold
    if mold is None:
        return []
    columns, _ = fitting(table.columns(scene.look, scene.changes), width)
    return [tuple(_row(mold, UNKNOWN, columns))]


def fitting(columns: Sequence[Column], width: int) -> tuple[list[Column], int]:
    """Returns the columns that fit, and the room left for notes: 0 if too little."""
    kept: list[Column] = []
    used = 0
    for column in columns:
        if used + column.width > width:
            return kept, 0
        kept.append(column)
        used += column.width + _GAP
    room = width - used
    return kept, room if room >= table.NOTE_ROOM else 0


def _row(worker: Worker, change: Change, columns: Sequence[Column]) -> Iterable[Span]:
    for column in columns:
        cell = column.cell(worker, change)
        yield Span(_aligned(cell.text, column), cell.mark)
        yield Span(" " * _GAP)


def _aligned(text: str, column: Column) -> str:
    text = text[: column.width]
    return text.ljust(column.width) if column.to_the_left else text.rjust(column.width)


def _requests_title(view: View) -> str:
    return "requests:" if view.shows_all else f"requests over {table.LONG:.0f} s:"


def _requests(view: View, requests: Sequence[Running], room: int) -> list[Line]:
    if not requests or room < 2:
        return []
    at = next((index for index, one in enumerate(requests) if view.mark == mark_of(one)), 0)
    lines = window(requests, at, room - 1, lambda shown: [_request_line(one, view.mark) for one in shown])
    return [(Span(_requests_title(view), "bold"),), *lines]


def _request_line(one: Running, mark: Mark | None) -> Line:
    where = f"{one.worker.entry.slot}.{one.request.slot}"
    text = f"  {where:<6} {one.request.age:7.1f} s  {one.request.phase:<9} {one.request.text}"
    return (Span(text, "chosen" if mark == mark_of(one) else ""),)


def _pane(view: View, room: int) -> list[Line]:
    return [(Span(text),) for text in ("", *view.pane)[view.scroll : view.scroll + room]]


def _bottom(scene: Scene, rows: Rows, width: int) -> list[Line]:
    """Renders the question or message, or the note of the chosen worker; then the keys."""
    view = scene.view
    worker = rows.worker(view.mark)
    if view.question is not None:
        said = Span(f"{view.question.question} (y/n)", "bold")
    elif view.message:
        said = Span(view.message, "bad" if view.is_bad else "bold")
    elif worker is not None and worker.entry.note and not view.pane:
        said = Span(f"worker {worker.entry.slot}: {worker.entry.note}", "warn")
    else:
        said = Span("")
    keys = PANE_KEYS if view.pane else _keys(view)
    texts = textwrap.wrap(said.text, width)[:MOST_SAID] or [""]
    return [*[(Span(text, said.style),) for text in texts], flow(map(Cell, keys), width, "  ")[0]]


def _keys(view: View) -> Sequence[str]:
    if view.shows_routes:
        return READ_ONLY_ROUTES_KEYS if view.is_read_only else ROUTES_KEYS
    return READ_ONLY_KEYS if view.is_read_only else KEYS


def _chosen(spans: Sequence[Span], width: int) -> Line:
    return (Span("".join(span.text for span in spans).ljust(width), "chosen"),)


def _cut(line: Line, width: int) -> Line:
    """No more characters than there are columns; each of ours is as wide as one."""
    cut, left = [], width
    for span in line:
        if left > 0 and span.text:
            cut.append(Span(span.text[:left], span.style))
            left -= len(span.text)
    return tuple(cut)
