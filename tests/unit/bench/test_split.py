"""Where the time went, from histograms of the scoreboard."""

from __future__ import annotations

import mmap
import os
from collections import Counter

import pytest
from tricorn.bench import split
from tricorn.metrics.scoreboard import Scoreboard


def histograms(queue: int, application: int, total: int, count: int) -> split.Histograms:
    return {
        "queue": Counter({queue: count}),
        "application": Counter({application: count}),
        "total": Counter({total: count}),
    }


def test_the_middle_of_a_bucket_is_between_its_edge_and_the_next() -> None:
    """Four buckets for each doubling: 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 …"""
    assert [split.middle(edge) for edge in (0, 3, 4, 7, 8, 14, 16, 1024)] == [0.5, 3.5, 4.5, 7.5, 9, 15, 18, 1152]


def test_only_requests_between_two_readings_count() -> None:
    before, after = histograms(4, 8, 16, 100), histograms(4, 8, 16, 100)
    for name, edge in (("queue", 1024), ("application", 2048), ("total", 4096)):
        after[name][edge] += 50
    parts = split.between(before, after)
    assert parts is not None
    assert parts["queue"] == pytest.approx(1152e-6)
    assert parts["application"] == pytest.approx(2304e-6)
    assert parts["rest"] == pytest.approx((4608 - 1152 - 2304) * 1e-6)


def test_without_requests_or_without_readings_there_is_nothing_to_tell() -> None:
    assert split.between(histograms(4, 8, 16, 10), histograms(4, 8, 16, 10)) is None
    assert split.between(None, histograms(4, 8, 16, 10)) is None


def test_pages_are_found_in_shared_memory_and_what_was_not_touched_stays_so() -> None:
    """This process plays the arbiter, with a page in the midst of a large mapping."""
    size = 64 * mmap.PAGESIZE
    with mmap.mmap(-1, size) as shared:
        page = memoryview(shared)[16 * mmap.PAGESIZE : 32 * mmap.PAGESIZE]
        board = Scoreboard(page)
        board.begin(os.getpid())
        before = resident(size)
        found = split.histograms([os.getpid()])
        assert resident(size) == before
        del board
        page.release()
    assert found is not None
    assert set(found) == {"queue", "application", "total"}


def resident(size: int) -> int:
    """KiB of the shared mapping of this size that are in memory."""
    with open("/proc/self/smaps", encoding="ascii", errors="replace") as lines:
        ours = False
        for line in lines:
            if "-" in line.split(" ", 1)[0]:
                start, _, end = line.split(" ", 1)[0].partition("-")
                ours = "/dev/zero" in line and int(end, 16) - int(start, 16) == size
            elif ours and line.startswith("Rss:"):
                return int(line.split()[1])
    raise AssertionError("the mapping is not there")
