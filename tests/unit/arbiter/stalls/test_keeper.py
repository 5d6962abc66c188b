"""Stalls are kept, summed up by what is the same, and logged from time to time."""

from __future__ import annotations

import json

from tricorn.arbiter.stalls.keeper import KEPT, MINUTE, PAUSE, Stalls
from tricorn.record import replace

from tests.unit.arbiter.stalls.made import HELD, stall

DAY = 1_800_000_000.0


def test_the_line_is_made_of_the_record() -> None:
    record, line = Stalls().take(stall(library="librdkafka"), HELD, 0.0, DAY)
    assert line == (
        "The event loop of worker (pid:7) was held up for 0.40 s by one call. Blocked in the system call futex. "
        "BLOCKED_SYSCALL: blocked 98 %, computed 2 %, wanted a processor 0 %. The library: librdkafka 2.16.0. "
        "The line: p.flush(). Other requests at that time: 9 (3.6 request-seconds). The last to begin: GET /pay. "
        f"Cure: {record['cure']} (docs/DOCTOR.md#blocked_syscall)"
    )
    assert json.loads(json.dumps(record)) == record
    assert (record["schema"], record["repeats"], record["library_version"]) == ("tricorn-stall/1", 0, "2.16.0")


def test_the_same_again_is_summed_up() -> None:
    stalls = Stalls()
    assert stalls.take(stall(), HELD, 0.0, DAY)[1] is not None
    assert stalls.take(stall(), HELD, 1.0, DAY)[1] is None
    assert stalls.take(stall(line=15), HELD, 2.0, DAY)[1] is not None, "another line is told at once"
    assert stalls.take(stall(), HELD, PAUSE - 0.1, DAY)[1] is None
    record, line = stalls.take(stall(), HELD, PAUSE, DAY)
    assert line is not None
    assert "Since this was told last: 2 times, 0.8 s, 7.2 request-seconds." in line
    assert record["repeats"] == 3


def test_the_end_of_what_was_told_while_it_went_on_is_told_too() -> None:
    stalls = Stalls()
    _, line = stalls.take(stall(duration=0.7, ongoing=True), HELD, 0.0, DAY)
    assert line is not None
    assert " is held up for 0.70 s" in line
    other = replace(HELD, pid=8)
    assert stalls.take(stall(duration=2.0, added=1.3, again=True), other, 1.0, DAY)[1] is None
    _, line = stalls.take(stall(duration=3.0, added=2.3, again=True), HELD, 2.0, DAY)
    assert line is not None
    assert " was held up for 3.00 s" in line
    (row,) = stalls.report("start", 2.0)["stalls"]
    assert row["total"] == {"count": 1, "seconds": 4.3, "request_seconds": 38.7}


def test_what_costs_most_comes_first_and_a_minute_ends() -> None:
    stalls = Stalls()
    stalls.take(stall(line=1), HELD, 0.0, DAY)
    stalls.take(stall(line=2, duration=9.0), HELD, 1.0, DAY)
    assert [row["line"] for row in stalls.report("start", 2.0)["stalls"]] == [2, 1]
    stalls.take(stall(line=1), HELD, 5.0 * MINUTE, DAY)
    (row,) = stalls.report("minute", 5.0 * MINUTE)["stalls"]
    assert (row["line"], row["total"]["count"]) == (1, 1)
    assert stalls.report("minute", 9.0 * MINUTE)["stalls"] == []


def test_what_is_kept_has_an_end() -> None:
    stalls = Stalls()
    for line in range(KEPT + 9):
        stalls.take(stall(line=line, duration=1.0 + line), HELD, float(line), DAY)
    assert len(stalls.records()) == KEPT
    report = stalls.report("start", 1.0)
    assert len(report["stalls"]) == KEPT
    assert report["forgotten"]["count"] == 9
    assert min(row["line"] for row in report["stalls"]) == 9, "the cheapest are forgotten"
