"""Where the time of requests went, read from outside: the pages of a running tricorn's scoreboard.

The pages are shared memory of the arbiter and its workers. A process may read the memory of its own descendants through
/proc/PID/mem (ptrace(2), PTRACE_MODE_READ), and `tricorn bench` has started the arbiter. Only what a process has
touched is read (/proc/PID/pagemap, bit 63): reading shared memory allocates it, and the server would seem to need it.
"""

from __future__ import annotations

import mmap
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from tricorn.bench.result import Parts
from tricorn.metrics.scoreboard import Scoreboard

MAGIC = int.from_bytes(b"TRICORN\0", "big").to_bytes(8, sys.byteorder)
"""A page begins with it: one word in native byte order."""
HISTOGRAMS = ("queue", "application", "total")
PAGE = os.sysconf("SC_PAGE_SIZE")
PRESENT = 1 << 63
_SHARED = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw-s \S+ \S+ (\d+) +/dev/zero", re.MULTILINE)
"""A shared mapping without a file: from, to, inode (proc_pid_maps(5))."""

Histograms = dict[str, Counter[int]]
"""Lower edges of buckets in microseconds, and how many requests are in them."""


def histograms(pids: Iterable[int]) -> Histograms | None:
    """The sums over all workers; None if the processes have no such pages, or they cannot be read."""
    found: Histograms = {name: Counter() for name in HISTOGRAMS}
    seen = False
    for page in _pages(pids):
        board = Scoreboard(page)
        try:
            if board.read() is None:
                continue
            for name in HISTOGRAMS:
                found[name].update(board.histogram(name))
        except ValueError:  # pages of another version
            return None
        seen = True
    return found if seen else None


def between(before: Histograms | None, after: Histograms | None) -> Parts | None:
    """Mean seconds of the requests that came between two readings."""
    if before is None or after is None:
        return None
    means = {}
    for name in HISTOGRAMS:
        counts = {edge: count - before[name][edge] for edge, count in after[name].items()}
        requests = sum(counts.values())
        if requests <= 0:
            return None
        means[name] = sum(middle(edge) * count for edge, count in counts.items()) / requests / 1e6
    rest = max(0.0, means["total"] - means["queue"] - means["application"])
    return {"queue": means["queue"], "application": means["application"], "rest": rest}


def middle(edge: int) -> float:
    """Of a bucket, in microseconds: there are four for each doubling (docs/ARCHITECTURE.md)."""
    if edge < 4:
        return edge + 0.5
    width = 1 << (edge.bit_length() - 3)
    return edge + width / 2


def _pages(pids: Iterable[int]) -> Iterator[memoryview]:
    """Each from its magic to the next one's."""
    regions: dict[str, mmap.mmap] = {}
    for pid in pids:
        try:
            _read(pid, regions)
        except OSError:  # it has ended, or is another user's
            continue
    for region in regions.values():
        places = []
        place = region.find(MAGIC)
        while place >= 0:
            places.append(place)
            place = region.find(MAGIC, place + len(MAGIC))
        for start, end in pairwise([*places, len(region)]):
            yield memoryview(region)[start:end]


def _read(pid: int, regions: dict[str, mmap.mmap]) -> None:
    """Copies what this process has touched of shared mappings to their place; `regions` are by inode."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory, open(f"/proc/{pid}/pagemap", "rb") as table:
        for match in _SHARED.finditer(maps):
            start, end = int(match[1], 16), int(match[2], 16)
            region = regions.setdefault(match[3], mmap.mmap(-1, end - start))
            table.seek(start // PAGE * 8)
            entries = memoryview(table.read((end - start) // PAGE * 8)).cast("Q")
            for number, entry in enumerate(entries):
                place = number * PAGE
                if entry & PRESENT and place + PAGE <= len(region):
                    region[place : place + PAGE] = os.pread(memory.fileno(), PAGE, start + place)
