"""One reading of a server: what its arbiter says, what stands in its pages, what the system says of its processes.

A page may say anything: its worker can write there. So nothing of it is used as a length, a place or a pid, texts are
made harmless before they are kept, and numbers are judged where two of them are compared (`change`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tricorn.metrics.scoreboard import Counts
from tricorn.record import Record

_UNSAFE = re.compile(r"[^ -~]")


def harmless(text: object, most: int = 200) -> str:
    """Replaces all but printable ASCII: one terminal cell for each character, and no escape sequence."""
    return _UNSAFE.sub("?", str(text)[:most])


class Counted(Record):
    """Counters of a worker since it began, or of all workers together."""

    figures: Mapping[str, int]
    statuses: Sequence[int]
    """Responses with status 1xx to 5xx."""
    histograms: Mapping[str, Sequence[int]]

    @classmethod
    def of(cls, counts: Counts) -> Counted:
        return cls(counts.figures, counts.statuses, counts.histograms)


class Request(Record):
    """A request that is with the application."""

    slot: int
    started: int
    """Monotonic nanoseconds: with the slot it says which call it is."""
    age: float
    text: str
    phase: str = ""
    """call, sending, body, websocket or upgraded."""


class Memory(Record):
    """Memory of a process, in bytes."""

    rss: int
    pss: int | None = None
    """Shared pages divided among those that share them; it costs the kernel more, so it is older than the rest."""
    uss: int | None = None
    """Pages that no other process has, measured together with PSS."""


class Entry(Record):
    """A worker as the arbiter knows it."""

    number: int
    """It is never given again."""
    pid: int
    slot: int
    page: int | None
    """Index of its page in the region."""
    kind: str
    """The worker class."""
    generation: int
    phase: str
    """booting, serving, retiring or leaving."""
    age: float
    note: str = ""


class Page(Record):
    """Contents of a worker's page."""

    state: str
    threads: int
    """Number of requests that can run at once."""
    figures: Mapping[str, int]
    oldest_wait: float
    counted: Counted
    requests: tuple[Request, ...]
    """The oldest first; not all if there are many."""


class Worker(Record):
    entry: Entry
    page: Page | None
    memory: Memory | None
    sessions: int | None = None
    """Sessions that the server knows to be in its memory (`affinity`); None: they are not counted."""


class Server(Record):
    """Status of the server, as the arbiter reports it."""

    name: str
    version: str
    pid: int
    generation: int
    wanted: int
    up: float
    """Seconds since it began."""
    is_ready: bool | None
    notes: tuple[str, ...] = ()


class Route(Record):
    """Cost of a route's requests since the start; times in seconds."""

    name: str
    requests: int
    errors: int
    """Responses 5xx."""
    seconds: float
    told: float
    """The same of those of which is known what it was used for; the next are its parts."""
    cpu: float
    blocked: float
    yielded: float
    delayed: float
    buckets: Sequence[int]


class Look(Record):
    at: float
    """Monotonic seconds."""
    server: Server
    workers: tuple[Worker, ...]
    """Without the mold."""
    totals: Counted | None
    """Counters including those of workers that are gone; None without pages."""
    missing: tuple[str, ...] = ()
    """A sentence for each thing that could not be read."""
    reloads: Mapping[str, int] = {}
    """Count of reloads by result: committed, refused, rolled_back."""
    exits: Mapping[str, int] = {}
    """Workers that have ended, by reason."""
    mold: Worker | None = None
    """The process of which workers are forked (`preload_app`): it has no page."""
    routes: tuple[Route, ...] | None = None
    """The most expensive first; None if they were not asked for, or are not counted."""
