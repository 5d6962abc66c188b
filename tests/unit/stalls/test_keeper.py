"""Stalls are kept, summed up by what is the same, and logged from time to time."""

from __future__ import annotations

import json

from tricorn.cli import ctl_text
from tricorn.record import replace
from tricorn.stalls.keeper import KEPT, LONG_PAUSE, MINUTE, PAUSE, Stalls
from tricorn.workers.stall import Place

from tests.unit.stalls.made import HELD, pool_wait, saturated, slow, stall

DAY = 1_800_000_000.0


def test_the_line_is_made_of_the_record() -> None:
    record, line = Stalls().take(stall(library="librdkafka"), HELD, 0.0, DAY)
    assert line == (
        "The event loop of worker (pid:7) was blocked for 0.40 s by one call. Blocked in the system call futex. "
        "BLOCKED_SYSCALL: blocked 98 %, on CPU 2 %, waiting for CPU 0 %. Library: librdkafka 2.16.0. "
        "Code: p.flush(). It delayed 9 other requests (3.6 request-seconds). Most recent request: GET /pay. "
        f"Fix: {record['cure']} (docs/diagnose/doctor.md#blocked_syscall)"
    )
    assert json.loads(json.dumps(record)) == record
    assert (record["schema"], record["repeats"], record["library_version"]) == ("tricorn-stall/1", 0, "2.16.0")


def test_repeated_stalls_are_summed_up() -> None:
    stalls = Stalls()
    assert stalls.take(stall(), HELD, 0.0, DAY)[1] is not None
    assert stalls.take(stall(), HELD, 1.0, DAY)[1] is None
    assert stalls.take(stall(line=15), HELD, 2.0, DAY)[1] is not None, "another line is told at once"
    assert stalls.take(stall(), HELD, PAUSE - 0.1, DAY)[1] is None
    record, line = stalls.take(stall(), HELD, PAUSE, DAY)
    assert line is not None
    assert "Since the last report: 2 times, 0.8 s, 7.2 request-seconds." in line
    assert record["repeats"] == 3


def test_the_end_of_what_was_told_while_it_went_on_is_told_too() -> None:
    stalls = Stalls()
    _, line = stalls.take(stall(duration=0.7, ongoing=True), HELD, 0.0, DAY)
    assert line is not None
    assert " is blocked for 0.70 s" in line
    other = replace(HELD, pid=8)
    assert stalls.take(stall(duration=2.0, added=1.3, again=True), other, 1.0, DAY)[1] is None
    _, line = stalls.take(stall(duration=3.0, added=2.3, again=True), HELD, 2.0, DAY)
    assert line is not None
    assert " was blocked for 3.00 s" in line
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


def test_requests_that_wait_for_a_pool_have_its_words_and_their_number() -> None:
    record, line = Stalls().take(pool_wait(ongoing=True), HELD, 0.0, DAY)
    assert line == (
        "Requests of worker (pid:7), gevent, have been waiting for a pool for 3.20 s. 37 of 40 requests in flight are "
        "waiting for a database connection from SQLAlchemy's pool, which has 5 connections and 10 overflow "
        "(sqlalchemy/pool/impl.py:_do_get), from app.py:14 in pay; the oldest request is 3.4 s old. "
        "POOL_WAIT. So far: 118.4 request-seconds. "
        f"Most recent request: GET /pay. Fix: {record['cure']} (docs/diagnose/doctor.md#pool_wait)"
    )
    assert (record["pool"], record["waiting"], record["request_seconds"]) == ("sqlalchemy", 37, 118.4)
    assert "pool_size and max_overflow" in record["cure"]
    assert json.loads(json.dumps(record)) == record


def test_a_loop_that_waits_for_a_pool_is_held_up_by_it() -> None:
    _, line = Stalls().take(pool_wait(waiting=0), HELD, 0.0, DAY)
    assert line is not None
    assert line.startswith(
        "The event loop of worker (pid:7) was blocked for 3.20 s by one call. Waiting for a database"
    )
    assert "from SQLAlchemy's pool, which has 5 connections" in line


def test_a_request_that_takes_long_is_told_with_its_line() -> None:
    record, line = Stalls().take(slow(ongoing=True), HELD, 0.0, DAY)
    assert line is not None
    assert line.startswith("GET /pay has run for 2.30 s in worker (pid:7), gevent. Blocked in the system call futex. ")
    assert "Code: query()." in line
    assert "Most recent request" not in line
    assert record["seen"] == "BLOCKED_SYSCALL"


def test_the_states_of_a_service_are_told_seldom_and_their_progress_is_summed_up() -> None:
    stalls = Stalls()
    assert stalls.take(pool_wait(ongoing=True), HELD, 0.0, DAY)[1] is not None
    again = pool_wait(ongoing=True, again=True, added=50.0, cost=168.4)
    assert stalls.take(again, HELD, PAUSE + 1, DAY)[1] is None
    end = pool_wait(again=True, added=1.0, cost=169.4)
    _, line = stalls.take(end, HELD, PAUSE + 2, DAY)
    assert line is not None, "its end is told"
    assert "were waiting for a pool" in line
    (row,) = stalls.report("start", 20.0)["stalls"]
    assert (row["total"]["count"], row["total"]["request_seconds"]) == (1, 169.4)
    assert stalls.take(pool_wait(ongoing=True), HELD, LONG_PAUSE, DAY)[1] is None
    assert stalls.take(pool_wait(ongoing=True), HELD, LONG_PAUSE + PAUSE + 2, DAY)[1] is not None
    assert stalls.take(slow(ongoing=True), HELD, LONG_PAUSE, DAY)[1] is not None, "the same line, another state"


def test_a_worker_that_is_saturated_is_told_by_what_it_has() -> None:
    _, line = Stalls().take(saturated(), HELD, 0.0, DAY)
    assert line is not None
    assert line.startswith(
        "The worker (pid:7), gevent, has been saturated for 5.00 s. Its loop was busy with many short"
    )
    assert "up to 29 requests were waiting for their turn; the process used 0.98 CPUs." in line
    _, line = Stalls().take(saturated(oldest=0.6, waiting=3), HELD, 0.0, DAY)
    assert line is not None
    assert (
        "In every sample all 30 threads were busy, and up to 3 more requests were waiting, the oldest for 0.6 s" in line
    )


def test_what_cannot_be_looked_at_is_logged_once_and_stands_in_each_record() -> None:
    stalls = Stalls()
    told = [stalls.take(stall(line=line, missing="No stacks: a reason."), HELD, 0.0, DAY) for line in (1, 2)]
    said = "Not available: No stacks: a reason. Fix:"
    assert [said in (line or "") for _, line in told] == [True, False]
    assert [record["missing"] for record, _ in told] == ["No stacks: a reason."] * 2
    _, line = stalls.take(stall(line=3, missing="No peers."), HELD, 0.0, DAY)
    assert "Not available: No peers." in (line or ""), "another reason is news"
    assert stalls.take(stall(line=4), HELD, 0.0, DAY)[0]["missing"] is None


def test_a_look_between_two_slices_of_a_library_makes_no_second_kind() -> None:
    for libraries in (("librdkafka", "", "librdkafka"), ("", "librdkafka", "")):
        stalls = Stalls()
        lines = [stalls.take(stall(library=library), HELD, 0.0, DAY)[1] for library in libraries]
        assert [line is not None for line in lines] == [True, False, False]
        (row,) = stalls.report("start", 1.0)["stalls"]
        assert (row["library"], row["library_version"], row["total"]["count"]) == ("librdkafka", "2.16.0", 3)
        assert [record["library"] for record in stalls.records()] == [library or None for library in libraries]


def test_two_libraries_at_a_line_are_two_kinds_and_so_is_what_computes_there() -> None:
    stalls = Stalls()
    for library, verdict in (("libpq", "BLOCKED_SYSCALL"), ("libcurl", "BLOCKED_SYSCALL"), ("", "CPU_PYTHON")):
        assert stalls.take(stall(library=library, verdict=verdict), HELD, 0.0, DAY)[1] is not None
    stalls.take(stall(), HELD, 0.0, DAY)
    assert len(stalls.report("start", 1.0)["stalls"]) == 3, "which library waited is not known: none is blamed"


def test_what_came_once_is_told_so() -> None:
    stalls = Stalls()
    for now in (0.0, 1.0):
        stalls.take(stall(), HELD, now, DAY)
    _, line = stalls.take(stall(), HELD, PAUSE, DAY)
    assert "Since the last report: once, 0.4 s, 3.6 request-seconds." in (line or "")
    report = {**stalls.report("minute", PAUSE), "doctor": "observe"}
    assert ctl_text.stalls(report).startswith("1. 10.8 request-seconds: 3 times, 1.2 s. BLOCKED_SYSCALL")
    once = Stalls()
    once.take(stall(), HELD, 0.0, DAY)
    assert ctl_text.stalls(once.report("start", 0.0)).startswith("1. 3.6 request-seconds: once, 0.4 s. ")


def test_a_victim_of_the_gil_is_shown_with_who_holds_it_and_summed_by_that_line() -> None:
    stalls = Stalls()
    for sentence in ("Waiting for the GIL at a.py:1 in a.", "Waiting for the GIL at b.py:2 in b."):
        victim = replace(stall(verdict="GIL_VICTIM", source="subprocess.match(text)"), sentence=sentence)
        record, _ = stalls.take(victim, HELD, 0.0, DAY)
        assert "The thread that holds the GIL is the problem" in record["cure"]
    text = ctl_text.stalls(stalls.report("start", 0.0))
    assert text.startswith("1. 7.2 request-seconds: 2 times, ")
    assert "\n   Waiting for the GIL at b.py:2 in b.\n   app.py:14 in pay: subprocess.match(text)\n" in text


def test_stalls_without_a_line_are_told_apart_by_their_verdicts() -> None:
    stalls = Stalls()
    for verdict in ("GIL_VICTIM", "CPU_NATIVE_GIL", "CPU_NATIVE_GIL"):
        stalls.take(replace(stall(verdict=verdict), place=Place()), HELD, 0.0, DAY)
    counts = {row["verdict"]: row["total"]["count"] for row in stalls.report("start", 0.0)["stalls"]}
    assert counts == {"GIL_VICTIM": 1, "CPU_NATIVE_GIL": 2}
