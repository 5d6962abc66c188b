"""A reader of the scoreboard: one page of shared memory per worker, layout version 1.

The layout is the core's (`crates/tricorn-io/src/scoreboard.rs`, docs/ARCHITECTURE.md): 512 words of 64 bits in native
byte order, each written whole. A page is read without stopping its writer, so figures that belong together may be a
request apart.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass

MAGIC = 0x5452_4943_4F52_4E00
VERSION = 1
WORDS = 512
PAGE = struct.Struct(f"={WORDS}Q")

BUCKETS = 128
QUEUE_TIME = 64
APP_TIME = QUEUE_TIME + BUCKETS
TOTAL_TIME = APP_TIME + BUCKETS

_GAUGES = {"connections": 8, "in_flight": 9, "queued": 10, "body_bytes": 11}
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
}


class State(enum.Enum):
    """Where a worker is in its life."""

    BOOTING = 1
    SERVING = 2
    DRAINING = 3
    STOPPED = 4


@dataclass(frozen=True, slots=True)
class Histogram:
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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One worker at one moment."""

    pid: int
    state: State
    heartbeat: int
    """Monotonic nanoseconds; it rests while nothing is in flight."""
    threads: int
    gauges: dict[str, int]
    counters: dict[str, int]
    statuses: tuple[int, int, int, int, int]
    """Responses with status 1xx to 5xx."""
    queue_time: Histogram
    app_time: Histogram
    total_time: Histogram


def read(page: bytes | memoryview) -> Snapshot | None:
    """The worker that writes this page; `None` for a page no worker has begun.

    Raises `ValueError` for a page of another layout.
    """
    words = PAGE.unpack_from(page)
    if words[0] != MAGIC:
        return None
    if words[1] != VERSION:
        raise ValueError(f"a scoreboard of layout {words[1]}; this reader knows {VERSION}")
    return Snapshot(
        pid=words[2],
        state=State(words[3]),
        heartbeat=words[4],
        threads=words[5],
        gauges={name: words[index] for name, index in _GAUGES.items()},
        counters={name: words[index] for name, index in _COUNTERS.items()},
        statuses=(words[32], words[33], words[34], words[35], words[36]),
        queue_time=_histogram(words, QUEUE_TIME),
        app_time=_histogram(words, APP_TIME),
        total_time=_histogram(words, TOTAL_TIME),
    )


def _histogram(words: Sequence[int], start: int) -> Histogram:
    return Histogram(words[start : start + BUCKETS])
