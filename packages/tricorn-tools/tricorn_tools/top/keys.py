"""Reducer of key presses. Actions that change the server need confirmation, and are rejected in read-only mode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tricorn.record import Record, replace
from tricorn_tools.top import routes
from tricorn_tools.top.look import Request, Route, Worker
from tricorn_tools.top.table import SORTS, Running

READ_ONLY = "not allowed: started with --read-only"


class Ask(Record):
    """A request to the server."""

    word: str
    arguments: Mapping[str, object]
    question: str = ""
    """Confirmation to ask for; empty: none needed."""


class Quit(Record):
    """Ends the program."""


class Mark(Record):
    """Position of the cursor: a worker, or one of its requests."""

    number: int
    slot: int | None = None
    started: int = 0

    def is_of(self, running: Running) -> bool:
        request = running.request
        return (self.number, self.slot, self.started) == (running.worker.entry.number, request.slot, request.started)


class View(Record):
    """State of the user interface: the user's choices, and the program's messages."""

    is_read_only: bool = False
    mark: Mark | None = None
    sort: str = "number"
    shows_routes: bool = False
    """Whether routes are shown in place of workers."""
    route_sort: str = "load"
    shows_all: bool = False
    """Whether all running requests are shown, or only slow ones."""
    pane: tuple[str, ...] = ()
    """Text shown instead of the table: stacks, help."""
    scroll: int = 0
    question: Ask | None = None
    message: str = ""
    is_bad: bool = False


class Rows(Record):
    """Selectable rows, in the order of the screen."""

    workers: Sequence[Worker]
    requests: Sequence[Running]
    routes: Sequence[Route] = ()
    """Not selectable: the arrow keys scroll them."""

    def marks(self) -> list[Mark]:
        return [Mark(worker.entry.number) for worker in self.workers] + [mark_of(one) for one in self.requests]

    def worker(self, mark: Mark | None) -> Worker | None:
        return next((one for one in self.workers if mark and one.entry.number == mark.number), None)

    def request(self, mark: Mark | None) -> Request | None:
        return next((one.request for one in self.requests if mark and mark.is_of(one)), None)


HELP = (
    "q        quit; Esc: back to the table",
    "up down  select a worker or a request",
    "s        sort by number, busy, req/s, p99, cpu, rss; routes by load, req/s, p95, 5xx, time",
    "r        show all running requests, or only those over 1 s",
    "l        show routes; again, or Esc: workers",
    "Enter    show the Python stacks of the selected worker",
    "d        drain the selected worker: a successor starts first",
    "k        cancel the selected request",
    "+ -      add or remove a worker",
    "R        reload, like HUP",
    "?        this help",
    "",
    "d k + - R ask for confirmation: y confirms, any other key cancels.",
)


def mark_of(one: Running) -> Mark:
    return Mark(one.worker.entry.number, one.request.slot, one.request.started)


def press(view: View, key: str, rows: Rows) -> tuple[View, Ask | Quit | None]:
    """`key` is a character, or `up`, `down`, `page up`, `page down`, `enter`, `escape`."""
    if view.question is not None:
        asked = replace(view, question=None, message="" if key in ("y", "Y") else "nothing changed", is_bad=False)
        return asked, view.question if key in ("y", "Y") else None
    view = replace(view, message="", is_bad=False)
    match key:
        case "q":
            return view, Quit()
        case "escape":
            return replace(view, pane=(), scroll=0, shows_routes=view.shows_routes and bool(view.pane)), None
        case "?":
            return replace(view, pane=() if view.pane == HELP else HELP, scroll=0), None
        case "up" | "down" | "page up" | "page down":
            steps = {"up": -1, "down": 1, "page up": -10, "page down": 10}[key]
            return _moved(view, steps, rows), None
        case "l":
            return replace(view, pane=(), scroll=0, shows_routes=not view.shows_routes), None
        case "s":
            return _sorted(view), None
        case "r":
            said = "requests over 1 s" if view.shows_all else "all running requests"
            return replace(view, shows_all=not view.shows_all, message=said), None
        case "enter" | "d" | "k" if view.shows_routes and not view.pane:
            return _said(view, "press l to go back and select a worker or request"), None
        case "enter":
            return _stacks(view, rows)
        case "d" | "k" | "+" | "-" | "R":
            return _action(view, key, rows)
        case _:
            return view, None


def _moved(view: View, steps: int, rows: Rows) -> View:
    if view.pane:
        return replace(view, scroll=max(0, min(view.scroll + steps, len(view.pane) - 1)))
    if view.shows_routes:
        return replace(view, scroll=max(0, min(view.scroll + steps, len(rows.routes) - 1)))
    marks = rows.marks()
    if not marks:
        return view
    at = marks.index(view.mark) + steps if view.mark in marks else 0
    return replace(view, mark=marks[max(0, min(at, len(marks) - 1))])


def _sorted(view: View) -> View:
    """Sorts what is shown by the next order."""
    if view.shows_routes:
        sort = _after(view.route_sort, routes.SORTS)
        return replace(view, route_sort=sort, scroll=0, message=f"sorted by {sort}")
    sort = _after(view.sort, SORTS)
    return replace(view, sort=sort, message=f"sorted by {sort}")


def _after(name: str, names: Iterable[str]) -> str:
    known = list(names)
    return known[(known.index(name) + 1) % len(known)]


def _stacks(view: View, rows: Rows) -> tuple[View, Ask | None]:
    if view.pane:
        return replace(view, pane=(), scroll=0), None
    worker = rows.worker(view.mark)
    if worker is None:
        return _said(view, "select a worker or request with the arrow keys first"), None
    return view, Ask("stacks", {"slot": worker.entry.slot})


def _action(view: View, key: str, rows: Rows) -> tuple[View, None]:
    if view.is_read_only:
        return _said(view, READ_ONLY), None
    worker, request = rows.worker(view.mark), rows.request(view.mark)
    match key:
        case "R":
            ask = Ask("reload", {}, "reload configuration and code?")
        case "+":
            ask = Ask("scale", {"workers": "+1"}, "add a worker?")
        case "-":
            ask = Ask("scale", {"workers": "-1"}, "remove a worker?")
        case "d" if worker is not None:
            ask = Ask(
                "drain",
                {"slot": worker.entry.slot},
                f"drain worker {worker.entry.slot} (pid {worker.entry.pid})? A successor starts first.",
            )
        case "k" if worker is not None and request is not None:
            ask = Ask(
                "cancel",
                {"slot": worker.entry.slot, "place": request.slot, "start": request.started},
                f"cancel {request.text[:60]} of worker {worker.entry.slot}?",
            )
        case "k":
            return _said(view, "select a request with the arrow keys first"), None
        case _:
            return _said(view, "select a worker with the arrow keys first"), None
    return replace(view, question=ask), None


def _said(view: View, sentence: str) -> View:
    return replace(view, message=sentence, is_bad=True)
