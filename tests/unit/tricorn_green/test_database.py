"""Counting connections without holding them, and telling apart why one could not be had."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
from tricorn.metrics.scoreboard import Scoreboard
from tricorn_green.database import DELAY, PAUSE, Connections, Refusals, address_of

HERE = "127.0.0.1:5432"
TOO_MANY = "sorry, too many clients already"


class Connection:
    closed = False


def is_closed(connection: Connection) -> bool:
    return connection.closed


class Bench:
    def __init__(self) -> None:
        self.page = Scoreboard(bytearray(4096))
        self.told: list[tuple[str, str, int]] = []
        self.waits: list[tuple[float, Callable[[], object]]] = []
        self.connections = Connections(self.page, self._tell, lambda *later: self.waits.append(later))

    def _tell(self, address: str, refusals: Refusals) -> None:
        self.told.append((address, refusals.text, refusals.count))

    def wait(self) -> float:
        """Lets the only report come that is due later."""
        ((seconds, report),) = self.waits
        self.waits.clear()
        report()
        return seconds

    def open(self) -> Connection:
        connection = Connection()
        self.connections.opened(connection, is_closed)
        return connection

    @property
    def published(self) -> int:
        return self.page.databases


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_is_dropped_does_not_count(bench: Bench) -> None:
    kept, dropped = bench.open(), bench.open()
    assert bench.published == 2
    del dropped
    gc.collect()
    assert bench.published == 1
    assert not is_closed(kept)


def test_what_is_closed_and_kept_does_not_count_when_it_matters(bench: Bench) -> None:
    kept = [bench.open() for _ in range(5)]
    kept[0].closed = kept[1].closed = True
    bench.connections.failed(HERE, "FATAL:  sorry, too many clients already\n")
    assert bench.published == 3


def test_a_burst_is_reported_once_and_the_next_one_not_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("tricorn_green.database.time.monotonic", lambda: now)
    for _ in range(23):
        bench.connections.failed(HERE, TOO_MANY)
    assert bench.told == []
    assert bench.wait() == DELAY
    assert bench.told == [(HERE, TOO_MANY, 23)]
    now += 4
    bench.connections.failed(HERE, TOO_MANY)
    bench.connections.failed("db:5432", TOO_MANY)
    assert [seconds for seconds, _ in bench.waits] == [PAUSE - 4, DELAY]
    bench.connections.report()
    assert bench.told[1:] == [(HERE, TOO_MANY, 1), ("db:5432", TOO_MANY, 1)]
    bench.connections.report()
    assert len(bench.told) == 3, "told once"


def test_the_line_has_the_figures_that_led_there() -> None:
    line = Refusals(24, TOO_MANY).sentence(HERE, 97, 4, 1000)
    assert line.startswith(
        f"The database at {HERE} refused a worker 24 connections: {TOO_MANY}. This server holds 97. "
    )
    assert "4 x 1000 requests" in line
    assert "4000 connections at once" in line
    assert "refused a worker 1 connection:" in Refusals(1, TOO_MANY).sentence(HERE, 97, 4, 1000)


def test_closed_ones_are_not_kept_for_ever(bench: Bench) -> None:
    kept = []
    for _ in range(1000):
        kept.append(bench.open())
        kept[-1].closed = True
    assert bench.published < 40


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FATAL:  sorry, too many clients already\n", "sorry, too many clients already"),
        (
            'connection to server at "h", port 5432 failed: FATAL:  remaining connection slots are reserved for roles '
            "with the SUPERUSER attribute\n",
            "remaining connection slots are reserved for roles with the SUPERUSER attribute",
        ),
        (
            "FATAL:  remaining connection slots are reserved for non-replication superuser connections\n",
            "remaining connection slots are reserved for non-replication superuser connections",
        ),
        ('FATAL:  too many connections for role "x"\n', 'too many connections for role "x"'),
        ('FATAL:  too many connections for database "x"\n', 'too many connections for database "x"'),
        (
            "FATAL:  no more connections allowed (max_client_conn)\n",
            "no more connections allowed (max_client_conn)",
        ),
    ],
)
def test_too_many_is_known_by_its_words(bench: Bench, text: str, said: str) -> None:
    bench.connections.failed(HERE, text)
    bench.wait()
    assert bench.told == [(HERE, said, 1)]


@pytest.mark.parametrize(
    "text", ["Connection refused", 'FATAL:  database "x" does not exist', "timeout expired (connect_timeout: 1 s)"]
)
def test_other_failures_are_the_applications_business(bench: Bench, text: str) -> None:
    bench.connections.failed(HERE, text)
    assert bench.waits == bench.told == []


def test_addresses_are_as_people_write_them() -> None:
    assert address_of("db", "6432") == "db:6432"
    assert address_of(None, None) == "localhost:5432"
    assert address_of("/run/postgresql", 5432) == "/run/postgresql/.s.PGSQL.5432"
