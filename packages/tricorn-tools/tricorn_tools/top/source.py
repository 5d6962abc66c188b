"""Data source of `top`: queries the control socket, and reads the pages of the workers."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tricorn.control.client import Pages, Refused, TooLate
from tricorn.metrics.scoreboard import LedgerReader, PageReader, pages_in_use
from tricorn.record import replace
from tricorn_tools.top.look import Counted, Entry, Look, Memory, Page, Request, Route, Server, Worker, harmless
from tricorn_tools.top.memory import Memories

MOST_REQUESTS = 100
"""Most requests shown per worker: those that run longest."""
MOST_MEMORY = 1 << 50
"""Bytes that a process may have."""
SILENT = "The arbiter does not respond. Worker states are old; counters are current"
UNSEALED = "No percentiles and requests: "
BROKEN = "worker {slot}: could not read its page ({reason})"
_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")


class Control(Protocol):
    """`tricorn.control.client.Control`."""

    def ask(self, word: str, **arguments: object) -> dict[str, Any]: ...
    def pages(self) -> Pages: ...
    def close(self) -> None: ...


class Region:
    """The pages that the server has handed out, and which worker has which."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._region = memoryview(pages.region)
        self._ledger = LedgerReader(pages.ledger)
        self._by_number = {row.nr: row.page for row in pages.workers}

    def knows(self, number: int) -> bool:
        return number in self._by_number

    def page_of(self, number: int) -> int | None:
        page = self._by_number.get(number)
        return page if isinstance(page, int) and 0 <= page < self._pages.count else None

    def page(self, index: int) -> PageReader:
        size = self._pages.size
        return PageReader(self._region[index * size : (index + 1) * size])

    def happened(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Reloads by result, and workers that have ended by reason."""
        return self._ledger.reloads(), self._ledger.exits()

    def totals(self) -> Counted:
        """Sums the counters of pages that were in use. Reading others would allocate their shared memory."""
        used = min(pages_in_use(self._pages.group), self._pages.count)
        return Counted.of(self._ledger.totals([self.page(index) for index in range(used)]))


class Source:
    """A server, looked at once an interval. Raises ControlError when it does not answer."""

    def __init__(self, control: Control, memories: Memories | None = None) -> None:
        self._control = control
        self._memories = memories or Memories()
        self._region: Region | None = None
        self._why_no_pages = ""
        self._told: tuple[dict[str, Any], list[dict[str, Any]]] = ({}, [])
        """Last answers of the arbiter: about all, and about each worker."""

    def ask(self, word: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        return self._control.ask(word, **arguments)

    def close(self) -> None:
        self._control.close()

    def look(self, clock: Callable[[], float] = time.monotonic, *, routes: bool = False) -> Look:
        """`routes`: with these, which costs the arbiter another answer."""
        silent = self._ask()
        if not self._map(self._told[1]):
            silent = self._ask()
        status, rows = self._told
        server = _server(status)
        mold = _mold(status)
        pids = [row["pid"] for row in rows] + ([mold.pid] if mold else [])
        memories, missing = self._memories.look(server.pid, pids)
        broken: list[str] = []
        workers = []
        for row in rows:
            entry = _entry(row, status, self._region)
            page = self._page(entry, row, broken)
            workers.append(Worker(entry, page, memories.get(entry.pid) or _resident(page)))
        if not silent and any(map(_has_had_sessions, workers)):
            workers = self._with_sessions(workers)
        totals = self._region.totals() if self._region else _sum_of(workers)
        if self._why_no_pages:
            missing = (UNSEALED + self._why_no_pages, *missing)
        reloads, exits = self._region.happened() if self._region else ({}, {})
        told, unknown = self._routes() if routes and not silent else (None, ())
        sentences = (*silent, *missing, *unknown, *broken)
        molded = Worker(mold, None, memories.get(mold.pid)) if mold else None
        return Look(clock(), server, tuple(workers), totals, sentences, reloads, exits, molded, told)

    def _routes(self) -> tuple[tuple[Route, ...] | None, tuple[str, ...]]:
        """They, or a sentence that says why not."""
        try:
            answer = self._control.ask("routes")
        except TooLate:
            return None, (SILENT,)
        except Refused as refusal:
            known = harmless(refusal) if refusal.kind != "unknown" else "not supported by this server"
            return None, (f"No routes: {known}",)
        if not answer["counted"]:
            return None, ("Route metrics are disabled (route_metrics = 0)",)
        return tuple(map(_route, answer["routes"])), ()

    def _with_sessions(self, workers: list[Worker]) -> list[Worker]:
        """The same with the number of sessions of each, if the arbiter tells it."""
        try:
            rows = self._control.ask("sessions")["workers"]
        except (Refused, TooLate):
            return workers
        counts = {row["pid"]: row["sessions"] for row in rows}
        return [replace(worker, sessions=counts.get(worker.entry.pid)) for worker in workers]

    def _ask(self) -> tuple[str, ...]:
        """A sentence if the arbiter is silent; the pages of the workers it had are read all the same."""
        try:
            status = self._control.ask("status", brief=True)
            workers = self._control.ask("workers", brief=not self._why_no_pages)
            self._told = status, workers["workers"]
        except TooLate:
            if self._region is None:
                raise
            return (SILENT,)
        return ()

    def _map(self, rows: list[dict[str, Any]]) -> bool:
        """The table of the pages is asked for when there is a worker that is not in it, and else kept.

        False: they are refused, as is seen just now.
        """
        if self._why_no_pages or (self._region and all(self._region.knows(row["nr"]) for row in rows)):
            return True
        try:
            self._region = Region(self._control.pages())
        except Refused as refusal:
            self._why_no_pages = harmless(refusal)
        return not self._why_no_pages

    def _page(self, entry: Entry, row: dict[str, Any], broken: list[str]) -> Page | None:
        if self._region is None or entry.page is None:
            return _told(row)
        try:
            page = self._region.page(entry.page)
            snapshot = page.read()
            if snapshot is None:
                return None
            requests = heapq.nsmallest(MOST_REQUESTS, page.requests(), key=lambda request: request.started)
            counted = Counted.of(page.counts())
        except ValueError as error:  # of another layout: the worker has written there what it should not
            broken.append(BROKEN.format(slot=entry.slot, reason=harmless(error)))
            return None
        return Page(
            state=snapshot.state,
            threads=snapshot.threads,
            figures=snapshot.figures,
            oldest_wait=snapshot.oldest_wait,
            counted=counted,
            requests=tuple(Request(one.slot, one.started, one.age, harmless(one.text), one.phase) for one in requests),
        )


def _route(row: dict[str, Any]) -> Route:
    """The name is the application's."""
    return Route(
        name=harmless(row["route"]),
        requests=row["requests"],
        errors=row["errors"],
        seconds=float(row["seconds"]),
        told=float(row["told_seconds"]),
        cpu=float(row["cpu_seconds"]),
        blocked=float(row["blocked_seconds"]),
        yielded=float(row["yielded_seconds"]),
        delayed=float(row["delayed_seconds"]),
        buckets=tuple(row["buckets"]),
    )


def _server(status: dict[str, Any]) -> Server:
    notes = []
    if status.get("reloading"):
        notes.append("comparing canaries" if status.get("canary") else "reloading")
    if status.get("state") == "stopping":
        notes.append("stopping")
    if status.get("successor"):
        notes.append(f"USR2: pid {status['successor']} is to take over")
    return Server(
        name=harmless(status["name"], 40),
        version=harmless(status["version"], 20),
        pid=status["pid"],
        generation=status["generation"],
        wanted=status["workers"]["target"],
        up=float(status["uptime"]),
        is_ready=status.get("ready"),
        notes=tuple(notes),
    )


def _entry(row: dict[str, Any], status: dict[str, Any], region: Region | None) -> Entry:
    notes = [f"{row['stuck']} stuck"] if row.get("stuck") else []
    if row.get("note"):
        notes.append(harmless(row["note"]))
    return Entry(
        number=row["nr"],
        pid=row["pid"],
        slot=row["slot"] or 0,
        page=region.page_of(row["nr"]) if region else None,
        kind=harmless(row.get("class") or "", 20),
        generation=row["generation"],
        phase=harmless(row["state"], 10),
        age=float(row["age"]),
        note="; ".join(notes),
    )


def _mold(status: dict[str, Any]) -> Entry | None:
    told = status.get("mold")
    if not told or not told["pid"]:
        return None
    return Entry(
        number=0,
        pid=told["pid"],
        slot=0,
        page=None,
        kind="mold",
        generation=status["generation"],
        phase=harmless(told["state"], 10),
        age=float(told["age"]),
    )


def _has_had_sessions(worker: Worker) -> bool:
    """Whether it is worth it to ask for sessions, of which the arbiter reads a table of one MiB."""
    return bool(worker.page and worker.page.counted.figures.get("sessions_learned"))


def _resident(page: Page | None) -> Memory | None:
    """Returns the resident size that the worker itself has published, if any."""
    rss = page.figures.get("resident_bytes", 0) if page else 0
    return Memory(rss) if 0 < rss < MOST_MEMORY else None


def _told(row: dict[str, Any]) -> Page | None:
    """Returns a page from the arbiter's figures where the page itself is not handed out: no histograms, no requests."""
    if "figures" not in row:
        return None
    statuses = [row["statuses"][name] for name in _CLASSES]
    counted = Counted(row["figures"], statuses, {})
    return Page("", row["threads"], row["figures"], row["oldest_wait"], counted, ())


def _sum_of(workers: list[Worker]) -> Counted | None:
    """Sums the counters of the current workers. When one ends the sum falls, and that interval has no rate."""
    pages = [worker.page.counted for worker in workers if worker.page]
    if not pages:
        return None
    figures = {name: sum(page.figures.get(name, 0) for page in pages) for name in pages[0].figures}
    return Counted(figures, [sum(column) for column in zip(*(page.statuses for page in pages), strict=True)], {})
