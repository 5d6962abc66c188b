"""Where the time of requests went, read from outside: the pages of a running tricorn's scoreboard.

The pages are shared memory of the arbiter and its workers. A process may read the memory of its own descendants through
/proc/PID/mem (ptrace(2), PTRACE_MODE_READ), and `tricorn bench` has started the arbiter.
"""

from __future__ import annotations

import mmap
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tricorn.bench.result import Parts
from tricorn.metrics.scoreboard import Scoreboard

MAGIC = int.from_bytes(b"TRICORN\0", "big").to_bytes(8, sys.byteorder)
"""A page begins with it: one word in native byte order."""
HISTOGRAMS = ("queue", "application", "total")
_SHARED = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw-s .*/dev/zero", re.MULTILINE)

Histograms = dict[str, Counter[int]]
"""Lower edges of buckets in microseconds, and how many requests are in them."""


def histograms(arbiter: int) -> Histograms | None:
    """The sums over all workers; None if the process has no such pages, or they cannot be read."""
    found: Histograms = {name: Counter() for name in HISTOGRAMS}
    seen = False
    for page in _pages(arbiter):
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


def _pages(pid: int) -> Iterator[mmap.mmap]:
    """Each from its magic to the next one's."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text()
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    except OSError:
        return
    try:
        for match in _SHARED.finditer(maps):
            start, end = int(match[1], 16), int(match[2], 16)
            try:
                region = os.pread(memory, end - start, start)
            except OSError:
                continue
            yield from _cut(region)
    finally:
        os.close(memory)


def _cut(region: bytes) -> Iterator[mmap.mmap]:
    places = []
    place = region.find(MAGIC)
    while place >= 0:
        places.append(place)
        place = region.find(MAGIC, place + len(MAGIC))
    for place, following in pairwise([*places, len(region)]):
        page = mmap.mmap(-1, following - place)  # aligned, and writable
        page.write(region[place:following])
        yield page
