"""A database that takes no more connections: one line for a burst."""

from __future__ import annotations

import pytest
from tricorn.arbiter.mind.events import ChildExited, WorkerRefused
from tricorn.arbiter.mind.state import LONGEST_BURST, QUIET

from tests.unit.arbiter.mind.support import Arbiter, exits, running, texts

HERE = "127.0.0.1:5432"
TOO_MANY = "sorry, too many clients already"


def refuse(it: Arbiter, count: int = 1, *, nr: int = 1, address: str = HERE, held: int = 97) -> None:
    for _ in range(count):
        assert it.feel(WorkerRefused(nr, address, TOO_MANY, held)) == []


def test_a_burst_is_one_line_when_it_is_over() -> None:
    it = running(workers=4, at_once=1000)
    refuse(it, 20, held=90)
    refuse(it, 3, nr=2, held=97)
    refuse(it, 1, nr=3, held=95)
    assert it.state.next_deadline() == pytest.approx(it.now + QUIET)
    assert texts(it.wait(QUIET - 0.01)) == []
    (line,) = texts(it.wait(0.01), "error")
    assert line.startswith(f"The database at {HERE} refused 24 connections: {TOO_MANY}. This server held 97. ")
    assert "4 x 1000 requests" in line
    assert "4000 connections at once" in line
    assert texts(it.wait(60)) == [], "told once"


def test_the_next_burst_is_counted_from_the_start() -> None:
    it = running()
    refuse(it, 5)
    it.wait(QUIET)
    refuse(it)
    (line,) = texts(it.wait(QUIET))
    assert "refused 1 connection:" in line


def test_a_burst_that_does_not_end_is_told_of_from_time_to_time() -> None:
    it = running()
    lines = []
    for _ in range(round(2.5 * LONGEST_BURST / 0.5)):
        refuse(it)
        lines += texts(it.wait(0.5))
    assert len(lines) == 2
    assert len(texts(it.wait(QUIET))) == 1


def test_databases_are_told_apart() -> None:
    it = running()
    refuse(it, 2)
    refuse(it, 3, address="/run/postgresql/.s.PGSQL.5432")
    lines = texts(it.wait(QUIET))
    assert [line.partition(":")[0] for line in lines] == [
        "The database at 127.0.0.1",
        "The database at /run/postgresql/.s.PGSQL.5432 refused 3 connections",
    ]


def test_what_was_not_told_yet_is_told_before_the_end() -> None:
    it = running(workers=1)
    refuse(it, 2)
    it.signal("TERM")
    commands = it.feel(ChildExited(1, 0))
    assert "refused 2 connections" in texts(commands, "error")[0]
    assert exits(commands) == [0]


def test_no_refusals_no_deadline() -> None:
    it = running()
    before = it.state.next_deadline()
    refuse(it)
    it.wait(QUIET)
    assert it.state.next_deadline() == before
