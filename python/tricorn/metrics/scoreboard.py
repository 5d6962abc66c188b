"""A reader of the scoreboard: one page of shared memory per worker, and one for all of them; layout version 4.

The layout is the core's (`crates/tricorn-io/src/scoreboard/mod.rs`, docs/ARCHITECTURE.md): words of 64 bits in native
byte order, each written whole. A page is read without stopping its writer, so figures that belong together may be a
request apart. The page of a worker that was killed says what it was doing: the requests in it are those it was serving.

A page may have room for ten thousand requests. Shared memory is allocated by reading it, too, so nobody looks at more
of them than the worker ever had at once.

One word goes the other way: `order` is how the arbiter tells a worker whose Python may never run again. And workers
read one another's pages, to find who is idle: `vacate` is how the arbiter says that a worker will never be again.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Iterator, Sequence
from mmap import mmap

from tricorn.record import Record

MAGIC = 0x5452_4943_4F52_4E00
VERSION = 4
WORDS = 512
"""At least so many; more where the table of requests needs them."""

BUCKETS = 128
QUEUE_TIME = 64
APP_TIME = QUEUE_TIME + BUCKETS
TOTAL_TIME = APP_TIME + BUCKETS

ORDERS = 6
HEARTBEAT = 4
NOT_READY = 1
DRAIN = 2
YIELD = 4
REPLACED = 8

TABLE = TOTAL_TIME + BUCKETS
"""Where the running requests stand: an entry for each that can run at once, of a start time, a length, and text."""
ENTRY = 16
TEXT_WORDS = 13

FREE = 12
OLDEST = 13
DATABASES = 45
ENTRIES = 46

GROUP_BYTES = 4096

_GAUGES = {
    "connections": 8,
    "in_flight": 9,
    "queued": 10,
    "body_bytes": 11,
    "response_bytes": 14,
    "response_disk_bytes": 15,
    "body_disk_bytes": 52,
    "free": FREE,
    "databases": DATABASES,
    "head_bytes": 50,
}
_COUNTERS = {
    "accepted": 16,
    "requests": 17,
    "refused": 18,
    "head_timeouts": 19,
    "body_timeouts": 20,
    "write_timeouts": 21,
    "idle_closes": 22,
    "evicted": 23,
    "client_gone": 24,
    "spooled": 25,
    "app_errors": 26,
    "bytes_in": 27,
    "bytes_out": 28,
    "rescues": 29,
    "log_lost": 30,
    "handed_over": 40,
    "taken_over": 41,
    "queue_full": 42,
    "queue_late": 43,
    "left_queue": 44,
    "heads_shed": 51,
    "unforwarded": 53,
}


class State(enum.Enum):
    """Where a worker is in its life."""

    BOOTING = 1
    SERVING = 2
    DRAINING = 3
    STOPPED = 4


class Histogram(Record):
    """Durations, four buckets per doubling (log-linear), microseconds."""

    counts: Sequence[int]

    @property
    def total(self) -> int:
        return sum(self.counts)

    def quantile(self, fraction: float) -> int:
        """The lower edge of the bucket that holds this quantile, in microseconds; 0 if there is none."""
        wanted = fraction * self.total
        seen = 0
        for index, count in enumerate(self.counts):
            seen += count
            if count and seen >= wanted:
                return bucket_floor(index)
        return 0


def bucket_floor(index: int) -> int:
    """The smallest number of microseconds that bucket `index` counts."""
    if index < 4:
        return index
    octave = index // 4 + 1
    return (4 + index % 4) << (octave - 2)


class RunningRequest(Record):
    """A request that is with the application."""

    slot: int
    """Its place among the requests that can run at once."""
    age: float
    """Seconds since the application was called."""
    text: str
    """`GET /path?query`, cut at 104 bytes."""


class Snapshot(Record):
    """One worker at one moment."""

    pid: int
    state: State
    heartbeat: int
    """Monotonic nanoseconds; it rests while nothing is in flight."""
    threads: int
    """How many requests can run at once."""
    gauges: dict[str, int]
    oldest_wait: float
    """Seconds that the request has waited that waits longest; 0 if none does."""
    counters: dict[str, int]
    statuses: tuple[int, int, int, int, int]
    """Responses with status 1xx to 5xx."""
    queue_time: Histogram
    app_time: Histogram
    total_time: Histogram
    requests: tuple[RunningRequest, ...]


class Group(Record):
    """What all workers share at one moment."""

    sent: int
    """Requests that were ever sent into the channel between the workers."""
    taken: int
    """Those that were taken from it, by whomever."""
    pages: int
    """How many pages of workers are looked at: the highest in use, and one."""
    limit: int
    """The most requests that may run at once; 0: no limit."""
    limit_leader: int
    """The pid of the worker that keeps the limit; 0: nobody."""
    min_latency: float
    """Seconds an application call takes when nothing is in its way, as far as it was measured; 0: not yet."""

    @property
    def in_channel(self) -> int:
        """How many are on their way. The two numbers may be a request apart."""
        return max(0, self.sent - self.taken)


def read_group(page: bytes | bytearray | memoryview | mmap) -> Group:
    """The page that all workers of a server write."""
    with _words(page) as words:
        sent, taken, pages, limit, leader, latency = words[:6]
        return Group(sent, taken, pages, limit, leader, latency / 1e9)


def read(page: bytes | bytearray | memoryview | mmap, *, requests: bool = True) -> Snapshot | None:
    """The worker that writes this page; `None` for a page no worker has begun.

    Without `requests` those are left out: there may be thousands, and some look often. Raises `ValueError` for a page
    of another layout.
    """
    with _words(page) as words:
        if words[0] != MAGIC:
            return None
        if words[1] != VERSION:
            raise ValueError(f"a scoreboard of layout {words[1]}; this reader knows {VERSION}")
        return Snapshot(
            pid=words[2],
            state=State(words[3]),
            heartbeat=words[HEARTBEAT],
            threads=words[5],
            gauges={name: words[index] for name, index in _GAUGES.items()},
            oldest_wait=_seconds_since(words[OLDEST]),
            counters={name: words[index] for name, index in _COUNTERS.items()},
            statuses=(words[32], words[33], words[34], words[35], words[36]),
            queue_time=_histogram(words, QUEUE_TIME),
            app_time=_histogram(words, APP_TIME),
            total_time=_histogram(words, TOTAL_TIME),
            requests=tuple(_requests(words)) if requests else (),
        )


def begun(page: bytes | bytearray | memoryview | mmap) -> int:
    """How many requests the worker of this page has begun; 0 for a page no worker has begun.

    For hooks that ask for every request: nothing else of the page is read.
    """
    with _words(page) as words:
        return words[_COUNTERS["requests"]] + words[_GAUGES["in_flight"]] if words[0] == MAGIC else 0


def order(
    page: memoryview | mmap | bytearray,
    *,
    not_ready: bool = False,
    drain: bool = False,
    yields: bool = False,
    replaced: bool = False,
) -> None:
    """Tells the worker of this page what its core shall do by itself; the orders before are replaced.

    `not_ready`: its readiness path answers 503. `drain`: it drains, though its Python may never run again. The core
    looks when it ticks and when a signal wakes it. `yields`: when it drains it takes no more connections, since others
    listen on the same sockets. `replaced`: others serve on when it has left. A worker that has not begun its page yet
    finds them when it does.
    """
    with _words(page) as words:
        words[ORDERS] = NOT_READY * not_ready | DRAIN * drain | YIELD * yields | REPLACED * replaced


def orders(page: memoryview | mmap | bytearray) -> int:
    """What the arbiter has told this worker: `NOT_READY`, `DRAIN`, `YIELD` and `REPLACED`, added up."""
    with _words(page) as words:
        return words[ORDERS]


def count_databases(page: memoryview | mmap | bytearray, count: int) -> None:
    """Says in the worker's own page how many connections to databases it holds."""
    with _words(page) as words:
        words[DATABASES] = count


def databases(page: memoryview | mmap | bytearray) -> int:
    """How many connections to databases the worker of this page holds, as far as it can tell."""
    with _words(page) as words:
        return words[DATABASES]


def sum_of_databases(pages: memoryview, size: int) -> int:
    """How many the workers of these pages hold together; each page has `size` bytes."""
    return sum(databases(pages[start : start + size]) for start in range(0, len(pages), size))


def clear(page: memoryview | mmap | bytearray) -> None:
    """Makes a page that a worker had one that nobody has begun. What no worker used is not touched."""
    with _words(page) as words:
        used = TABLE + _entries(words) * ENTRY
        words.cast("B")[: used * 8] = bytes(used * 8)


def vacate(page: memoryview | mmap | bytearray) -> None:
    """The worker of this page is gone: nobody counts on its threads, or waits for those that waited there."""
    with _words(page) as words:
        words[FREE] = words[OLDEST] = words[DATABASES] = 0
        if words[0] == MAGIC:
            words[3] = State.STOPPED.value


def begin(page: memoryview | mmap | bytearray, pid: int) -> None:
    """For a worker without a core, which says nothing of its load.

    One request counts as in flight, so that the arbiter looks at the heartbeat, which rests for no core that is idle.
    """
    with _words(page) as words:
        for index, value in enumerate((VERSION, pid, State.SERVING.value, time.monotonic_ns(), 1), 1):
            words[index] = value
        words[_GAUGES["in_flight"]] = 1
        words[0] = MAGIC


def beat(page: memoryview | mmap | bytearray) -> None:
    """The heartbeat of a worker without a core."""
    with _words(page) as words:
        words[HEARTBEAT] = time.monotonic_ns()


def _words(page: bytes | bytearray | memoryview | mmap) -> memoryview:
    """The page as words: `memoryview` reads and writes each of them with one access, where slices go byte by byte."""
    return memoryview(page).cast("B").cast("Q")


def _histogram(words: memoryview, start: int) -> Histogram:
    return Histogram(words[start : start + BUCKETS].tolist())


def _seconds_since(moment: int) -> float:
    return max(0, time.monotonic_ns() - moment) / 1e9 if moment else 0.0


def _entries(words: memoryview) -> int:
    """How many entries were ever used, if the page has so many."""
    return min(words[ENTRIES], (len(words) - TABLE) // ENTRY)


def _requests(words: memoryview) -> Iterator[RunningRequest]:
    for slot in range(_entries(words)):
        entry = words[TABLE + slot * ENTRY :][:ENTRY]
        started, length = entry[0], min(entry[1], TEXT_WORDS * 8)
        text = entry[2 : 2 + TEXT_WORDS].tobytes()[:length]
        # The start is taken back before an entry changes, and set after: the same at both ends, it is the text's.
        if started and started == entry[0]:
            yield RunningRequest(slot, _seconds_since(started), text.decode("utf-8", "replace"))
