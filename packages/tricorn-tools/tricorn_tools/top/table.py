"""Text of looks and changes: the lines above the table, a row of cells for each worker, the running requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tricorn.record import Record
from tricorn_tools.top import figures
from tricorn_tools.top.change import Change, Changes
from tricorn_tools.top.look import Look, Memory, Request, Worker

LONG = 1.0
"""Requests that run for so many seconds are shown unless all are asked for."""
_IMPOSSIBLE = 10**7
"""So many requests, or connections, one worker does not have."""


class Cell(NamedTuple):
    """A text, and whether it should be noticed."""

    text: str
    mark: str = ""
    """`bad`, `warn` or nothing."""


class Column(Record):
    title: str
    width: int
    cell: Callable[[Worker, Change], Cell]
    to_the_left: bool = False


class Running(Record):
    """A request with the worker that runs it."""

    worker: Worker
    request: Request


def _plain(text: Callable[[Worker, Change], str]) -> Callable[[Worker, Change], Cell]:
    return lambda worker, change: Cell(text(worker, change))


def _figure(worker: Worker, name: str) -> int | None:
    """A gauge of the page, if it can be one."""
    value = worker.page.figures.get(name) if worker.page else None
    return value if value is not None and value <= _IMPOSSIBLE else None


def busy(worker: Worker) -> tuple[int, int] | None:
    """Returns how many requests run, and how many can."""
    running = _figure(worker, "in_flight")
    places = worker.page.threads if worker.page else 0
    return (running, places) if running is not None and 0 < places <= _IMPOSSIBLE else None


def _busy_cell(worker: Worker, _: Change) -> Cell:
    found = busy(worker)
    if found is None:
        return Cell(figures.UNKNOWN if worker.page else figures.NOTHING)
    running, places = found
    return Cell(f"{running}/{figures.count(places)}", "warn" if running >= places else "")


def _state_cell(worker: Worker, _: Change) -> Cell:
    phase = worker.entry.phase
    return Cell(phase, "" if phase == "serving" else "warn")


def _queue_cell(worker: Worker, _: Change) -> Cell:
    waiting = _figure(worker, "queued")
    return Cell(figures.count(waiting) if worker.page else figures.NOTHING, "warn" if waiting else "")


def _blocked_cell(_: Worker, change: Change) -> Cell:
    blocked = change.blocked
    return Cell(figures.percent(blocked), "bad" if blocked is not None and blocked > 0.5 else "")


def _p50(_: Worker, change: Change) -> str:
    return figures.milliseconds(change.total.p50 if change.total else None)


def _p99(_: Worker, change: Change) -> str:
    return figures.milliseconds(change.total.p99 if change.total else None)


def _rate(_: Worker, change: Change) -> str:
    return figures.NOTHING if change.requests is None else figures.count(change.requests)


BLOCK = Column("BLOCK", 5, _blocked_cell)
SESSIONS = Column(
    "SESS", 5, _plain(lambda worker, _: figures.NOTHING if worker.sessions is None else figures.count(worker.sessions))
)

COLUMNS = (
    Column("#", 3, _plain(lambda worker, _: str(worker.entry.slot or figures.NOTHING))),
    Column("PID", 7, _plain(lambda worker, _: str(worker.entry.pid))),
    Column("CLASS", 8, _plain(lambda worker, _: worker.entry.kind), to_the_left=True),
    Column("GEN", 3, _plain(lambda worker, _: str(worker.entry.generation))),
    Column("STATE", 8, _state_cell, to_the_left=True),
    Column("BUSY", 7, _busy_cell),
    Column("QUEUE", 5, _queue_cell),
    Column("REQ/S", 5, _plain(_rate)),
    Column("P50", 5, _plain(_p50)),
    Column("P99", 5, _plain(_p99)),
    BLOCK,
    Column("CPU", 5, _plain(lambda _, change: figures.percent(change.cpu))),
    Column("RSS", 5, _plain(lambda worker, _: figures.size(worker.memory.rss if worker.memory else None))),
    Column("PSS", 5, _plain(lambda worker, _: figures.size(worker.memory.pss if worker.memory else None))),
    Column("CONN", 5, _plain(lambda worker, _: _count_of(worker, "connections"))),
    SESSIONS,
    Column("AGE", 4, _plain(lambda worker, _: figures.span(worker.entry.age))),
    Column("USS", 5, _plain(lambda worker, _: figures.size(worker.memory.uss if worker.memory else None))),
)
"""Columns from left to right; the rightmost are left out first. A note takes the remaining room."""

NOTE_ROOM = 12
"""Notes are left out where fewer characters than these are left for them."""


def _count_of(worker: Worker, name: str) -> str:
    return figures.count(_figure(worker, name)) if worker.page else figures.NOTHING


def columns(look: Look, changes: Changes) -> tuple[Column, ...]:
    """All but those of which nothing is known."""
    knows_blocked = any(change.blocked is not None for change in changes.workers.values())
    has_sessions = any(worker.sessions for worker in look.workers)
    unknown = {BLOCK.title: not knows_blocked, SESSIONS.title: not has_sessions}
    return tuple(column for column in COLUMNS if not unknown.get(column.title, False))


SORTS: dict[str, Callable[[Worker, Change], float]] = {
    "number": lambda worker, _: worker.entry.slot or worker.entry.number,
    "busy": lambda worker, _: -(_figure(worker, "in_flight") or 0),
    "req/s": lambda _, change: -(change.requests or 0),
    "p99": lambda _, change: -(change.total.p99 if change.total else 0),
    "cpu": lambda _, change: -(change.cpu or 0),
    "rss": lambda worker, _: -(worker.memory.rss if worker.memory else 0),
}
"""Sort orders by name, in the order in which the key cycles through them."""


def ordered(look: Look, changes: Changes, sort: str) -> list[Worker]:
    key = SORTS[sort]
    return sorted(
        look.workers, key=lambda worker: (key(worker, changes.workers[worker.entry.number]), worker.entry.number)
    )


def running(look: Look, at_least: float = LONG) -> list[Running]:
    """The requests that run for so long, the oldest first."""
    found = [
        Running(worker, request)
        for worker in look.workers
        if worker.page
        for request in worker.page.requests
        if request.age >= at_least
    ]
    return sorted(found, key=lambda one: -one.request.age)


def headline(look: Look) -> list[Cell]:
    """Describes the server."""
    server = look.server
    serving = sum(worker.entry.phase == "serving" for worker in look.workers)
    cells = [
        Cell(f"{server.name}   tricorn {server.version}"),
        Cell(f"pid {server.pid}"),
        Cell(f"generation {server.generation}"),
        Cell(f"{serving} of {server.wanted} workers", "warn" if serving != server.wanted else ""),
        Cell(f"up {figures.long_span(server.up)}"),
    ]
    if server.is_ready is not None:
        cells.append(Cell("ready") if server.is_ready else Cell("not ready", "bad"))
    return cells + [Cell(note, "warn") for note in server.notes]


def summary(look: Look, changes: Changes) -> list[Cell]:
    """Summarizes all workers."""
    change, total, queue = changes.all, changes.all.total, changes.all.queue
    cells = [Cell(f"{figures.NOTHING if change.requests is None else figures.count(change.requests)} req/s")]
    if change.client_errors is not None and change.server_errors is not None:
        cells.append(Cell(f"4xx {figures.percent(change.client_errors, 1)}"))
        cells.append(
            Cell(f"5xx {figures.percent(change.server_errors, 1)}", "bad" if change.server_errors > 0.01 else "")
        )
    if total is not None:
        p50, p95, p99 = map(figures.milliseconds, (total.p50, total.p95, total.p99))
        cells.append(Cell(f"p50 {p50}  p95 {p95}  p99 {p99} ms"))
    waiting = _sum(_figure(worker, "queued") for worker in look.workers)
    late = f", p99 {figures.milliseconds(queue.p99)} ms" if queue else ""
    cells.append(Cell(f"queue {figures.count(waiting)}{late}", "warn" if waiting else ""))
    if change.shed is not None:
        cells.append(Cell(f"shed {figures.count(change.shed)}", "bad" if change.shed else ""))
    pairs = [pair for pair in map(busy, look.workers) if pair]
    if pairs:
        runs, places = (sum(column) for column in zip(*pairs, strict=True))
        cells.append(Cell(f"busy {figures.percent(runs / places)}", "warn" if runs >= places else ""))
    blocked = [one.blocked for one in changes.workers.values() if one.blocked is not None]
    if blocked:
        cells.append(Cell(f"blocked {figures.percent(sum(blocked) / len(blocked))}"))
    if change.gil is not None:
        cells.append(Cell(f"GIL wait p99 < {figures.milliseconds(change.gil.p99)} ms"))
    if change.cpu is not None:
        cells.append(Cell(f"CPU {change.cpu:.1f}"))
    processes = look.workers if look.mold is None else (*look.workers, look.mold)
    memories = [process.memory for process in processes if process.memory]
    if memories:
        cells.append(Cell(_memory(memories)))
    return cells


def _memory(memories: list[Memory]) -> str:
    """The sum of PSS counts shared pages once; where it is not known, a sum of RSS counts them for each worker."""
    parts = [memory.pss for memory in memories if memory.pss is not None]
    if len(parts) == len(memories):
        return f"memory {figures.size(sum(parts))} PSS"
    return f"memory {figures.size(sum(memory.rss for memory in memories))} RSS"


def _sum(values: Iterable[int | None]) -> int:
    return sum(value for value in values if value is not None)
