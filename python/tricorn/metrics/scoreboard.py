"""The scoreboard: a page of shared memory for each worker, which its core writes (docs/internals/scoreboard.md).

The core knows the layout, so it reads the pages too. Two things go the other way. `order` is how the arbiter tells a
worker whose Python may never run again. Workers read one another's pages, to find who is idle, so `vacate` says that a
worker will never be again.
"""

from __future__ import annotations

from collections.abc import Sequence

from tricorn._core import (
    GROUP_BYTES,
    LEDGER_BYTES,
    Counts,
    Ledger,
    LedgerReader,
    PageReader,
    Reports,
    Route,
    RoutePages,
    RunningRequest,
    Scoreboard,
    Snapshot,
    histogram_edges,
    is_metric_file,
    metric_families,
    pages_in_use,
    route_bytes,
    scoreboard_words,
)

__all__ = [
    "GROUP_BYTES",
    "LAYOUT",
    "LEDGER_BYTES",
    "Counts",
    "Ledger",
    "LedgerReader",
    "PageReader",
    "Reports",
    "Route",
    "RoutePages",
    "RunningRequest",
    "Scoreboard",
    "Snapshot",
    "histogram_edges",
    "is_metric_file",
    "metric_families",
    "pages_in_use",
    "percentile",
    "route_bytes",
    "scoreboard_words",
    "sum_of_databases",
]

LAYOUT = 10
"""The version of the layout of all of these pages. `Scoreboard.read` refuses a page of another."""


def sum_of_databases(pages: memoryview, size: int, group: memoryview) -> int:
    """Returns the number of database connections of the workers with these pages; each page has `size` bytes.

    Only pages that were in use are looked at: shared memory is allocated by its reader, too.
    """
    used = min(len(pages), size * pages_in_use(group))
    return sum(Scoreboard(pages[start : start + size]).databases for start in range(0, used, size))


def percentile(counts: Sequence[int], edges: Sequence[int], share: float) -> float:
    """Seconds below which this share of what is counted lies; within a bucket as if it were spread evenly."""
    wanted = share * sum(counts)
    below = 0
    for index, count in enumerate(counts):
        if count and below + count >= wanted:
            low, high = edges[index], edges[index + 1]
            return (low + (high - low) * (wanted - below) / count) / 1e9
        below += count
    return edges[-1] / 1e9
