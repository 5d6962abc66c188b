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


class Desk(Record):
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


def press(desk: Desk, key: str, rows: Rows) -> tuple[Desk, Ask | Quit | None]:
    """`key` is a character, or `up`, `down`, `page up`, `page down`, `enter`, `escape`."""
    if desk.question is not None:
        asked = replace(desk, question=None, message="" if key in ("y", "Y") else "not done", is_bad=False)
        return asked, desk.question if key in ("y", "Y") else None
    desk = replace(desk, message="", is_bad=False)
    match key:
        case "q":
            return desk, Quit()
        case "escape":
            return replace(desk, pane=(), scroll=0, shows_routes=desk.shows_routes and bool(desk.pane)), None
        case "?":
            return replace(desk, pane=() if desk.pane == HELP else HELP, scroll=0), None
        case "up" | "down" | "page up" | "page down":
            steps = {"up": -1, "down": 1, "page up": -10, "page down": 10}[key]
            return _moved(desk, steps, rows), None
        case "l":
            return replace(desk, pane=(), scroll=0, shows_routes=not desk.shows_routes), None
        case "s":
            return _sorted(desk), None
        case "r":
            said = "requests over 1 s" if desk.shows_all else "all requests that run"
            return replace(desk, shows_all=not desk.shows_all, message=said), None
        case "enter" | "d" | "k" if desk.shows_routes and not desk.pane:
            return _said(desk, "l goes back to the workers and requests, of which one is chosen"), None
        case "enter":
            return _stacks(desk, rows)
        case "d" | "k" | "+" | "-" | "R":
            return _action(desk, key, rows)
        case _:
            return desk, None


def _moved(desk: Desk, steps: int, rows: Rows) -> Desk:
    if desk.pane:
        return replace(desk, scroll=max(0, min(desk.scroll + steps, len(desk.pane) - 1)))
    if desk.shows_routes:
        return replace(desk, scroll=max(0, min(desk.scroll + steps, len(rows.routes) - 1)))
    marks = rows.marks()
    if not marks:
        return desk
    at = marks.index(desk.mark) + steps if desk.mark in marks else 0
    return replace(desk, mark=marks[max(0, min(at, len(marks) - 1))])


def _sorted(desk: Desk) -> Desk:
    """Sorts what is shown by the next order."""
    if desk.shows_routes:
        sort = _after(desk.route_sort, routes.SORTS)
        return replace(desk, route_sort=sort, scroll=0, message=f"sorted by {sort}")
    sort = _after(desk.sort, SORTS)
    return replace(desk, sort=sort, message=f"sorted by {sort}")


def _after(name: str, names: Iterable[str]) -> str:
    known = list(names)
    return known[(known.index(name) + 1) % len(known)]


def _stacks(desk: Desk, rows: Rows) -> tuple[Desk, Ask | None]:
    if desk.pane:
        return replace(desk, pane=(), scroll=0), None
    worker = rows.worker(desk.mark)
    if worker is None:
        return _said(desk, "choose a worker or a request with the arrows first"), None
    return desk, Ask("stacks", {"slot": worker.entry.slot})


def _action(desk: Desk, key: str, rows: Rows) -> tuple[Desk, None]:
    if desk.is_read_only:
        return _said(desk, READ_ONLY), None
    worker, request = rows.worker(desk.mark), rows.request(desk.mark)
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
            return _said(desk, "choose a request with the arrows first"), None
        case _:
            return _said(desk, "choose a worker with the arrows first"), None
    return replace(desk, question=ask), None


def _said(desk: Desk, sentence: str) -> Desk:
    return replace(desk, message=sentence, is_bad=True)
