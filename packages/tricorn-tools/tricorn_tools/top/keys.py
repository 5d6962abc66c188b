"""Reducer of key presses. Actions that change the server ask first, and are refused in read-only mode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tricorn.record import Record, replace
from tricorn_tools.top import routes
from tricorn_tools.top.look import Request, Route, Worker
from tricorn_tools.top.table import SORTS, Running

READ_ONLY = "read-only: nothing is changed from here (started with --read-only)"


class Ask(Record):
    """Something to be asked of the server."""

    word: str
    arguments: Mapping[str, object]
    question: str = ""
    """Put to the person at the keyboard first; empty: it changes nothing."""


class Quit(Record):
    """The end."""


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
    """All running requests, not only those that take long."""
    pane: tuple[str, ...] = ()
    """Text that takes the place of the table: stacks, help."""
    scroll: int = 0
    question: Ask | None = None
    message: str = ""
    is_bad: bool = False


class Rows(Record):
    """Selectable rows, in the order of the screen."""

    workers: Sequence[Worker]
    requests: Sequence[Running]
    routes: Sequence[Route] = ()
    """These are not chosen: the arrows move them."""

    def marks(self) -> list[Mark]:
        return [Mark(worker.entry.number) for worker in self.workers] + [mark_of(one) for one in self.requests]

    def worker(self, mark: Mark | None) -> Worker | None:
        return next((one for one in self.workers if mark and one.entry.number == mark.number), None)

    def request(self, mark: Mark | None) -> Request | None:
        return next((one.request for one in self.requests if mark and mark.is_of(one)), None)


HELP = (
    "q        quit; Esc goes back to the table",
    "up down  choose a worker or a request",
    "s        sort by number, busy, req/s, p99, cpu, rss; routes by load, req/s, p95, 5xx, time",
    "r        all running requests, or those over 1 s only",
    "l        the routes of the application; again, or Esc: the workers",
    "Enter    the Python stacks of the worker",
    "d        drain the worker: a successor serves before it leaves",
    "k        cancel the request",
    "+ -      one worker more, one less",
    "R        reload, as HUP does",
    "?        this page",
    "",
    "d k + - R ask first: y does it, any other key does not.",
)


def mark_of(one: Running) -> Mark:
    return Mark(one.worker.entry.number, one.request.slot, one.request.started)


def press(view: View, key: str, rows: Rows) -> tuple[View, Ask | Quit | None]:
    """`key` is a character, or `up`, `down`, `page up`, `page down`, `enter`, `escape`."""
    if view.question is not None:
        asked = replace(view, question=None, message="" if key in ("y", "Y") else "not done", is_bad=False)
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
            said = "requests over 1 s" if view.shows_all else "all requests that run"
            return replace(view, shows_all=not view.shows_all, message=said), None
        case "enter" | "d" | "k" if view.shows_routes and not view.pane:
            return _said(view, "l goes back to the workers and requests, of which one is chosen"), None
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
        return _said(view, "choose a worker or a request with the arrows first"), None
    return view, Ask("stacks", {"slot": worker.entry.slot})


def _action(view: View, key: str, rows: Rows) -> tuple[View, None]:
    if view.is_read_only:
        return _said(view, READ_ONLY), None
    worker, request = rows.worker(view.mark), rows.request(view.mark)
    match key:
        case "R":
            ask = Ask("reload", {}, "reload: load configuration and code anew?")
        case "+":
            ask = Ask("scale", {"workers": "+1"}, "one worker more?")
        case "-":
            ask = Ask("scale", {"workers": "-1"}, "one worker less?")
        case "d" if worker is not None:
            ask = Ask(
                "drain",
                {"slot": worker.entry.slot},
                f"drain worker {worker.entry.slot} (pid {worker.entry.pid})? A successor serves first.",
            )
        case "k" if worker is not None and request is not None:
            ask = Ask(
                "cancel",
                {"slot": worker.entry.slot, "place": request.slot, "start": request.started},
                f"cancel {request.text[:60]} of worker {worker.entry.slot}?",
            )
        case "k":
            return _said(view, "choose a request with the arrows first"), None
        case _:
            return _said(view, "choose a worker with the arrows first"), None
    return replace(view, question=ask), None


def _said(view: View, sentence: str) -> View:
    return replace(view, message=sentence, is_bad=True)
