"""Counting connections without holding them, and telling apart why one could not be had."""

from __future__ import annotations

import gc

import pytest
from tricorn.green.database import Connections, address_of
from tricorn.metrics import scoreboard

HERE = "127.0.0.1:5432"


class Connection:
    closed = False


def is_closed(connection: Connection) -> bool:
    return connection.closed


class Bench:
    def __init__(self) -> None:
        self.page = memoryview(bytearray(4096))
        self.told: list[tuple[str, str]] = []
        self.connections = Connections(self.page, lambda address, text: self.told.append((address, text)))

    def open(self, address: str = HERE) -> Connection:
        connection = Connection()
        self.connections.opened(connection, address, is_closed)
        return connection

    @property
    def published(self) -> int:
        return scoreboard.databases(self.page)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_is_dropped_does_not_count(bench: Bench) -> None:
    kept, dropped = bench.open(), bench.open()
    assert bench.published == 2
    del dropped
    gc.collect()
    assert bench.published == bench.connections.held() == 1
    assert not is_closed(kept)


def test_what_is_closed_and_kept_does_not_count_when_it_matters(bench: Bench) -> None:
    kept = [bench.open() for _ in range(5)]
    kept[0].closed = kept[1].closed = True
    bench.connections.failed(HERE, "FATAL:  sorry, too many clients already\n")
    assert bench.published == 3
    assert bench.told == [(HERE, "sorry, too many clients already")]


def test_closed_ones_are_not_kept_for_ever(bench: Bench) -> None:
    kept = []
    for _ in range(1000):
        kept.append(bench.open())
        kept[-1].closed = True
    assert bench.published < 40


def test_addresses_are_told_apart(bench: Bench) -> None:
    kept = [bench.open(), bench.open("db:5432"), bench.open("db:5432")]
    assert (bench.connections.held(), bench.connections.held("db:5432"), bench.connections.held("no:1")) == (3, 2, 0)
    assert len(kept) == bench.published


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
    assert bench.told == [(HERE, said)]


@pytest.mark.parametrize(
    "text", ["Connection refused", 'FATAL:  database "x" does not exist', "timeout expired (connect_timeout: 1 s)"]
)
def test_other_failures_are_the_applications_business(bench: Bench, text: str) -> None:
    bench.connections.failed(HERE, text)
    assert bench.told == []


def test_addresses_are_as_people_write_them() -> None:
    assert address_of("db", "6432") == "db:6432"
    assert address_of(None, None) == "localhost:5432"
    assert address_of("/run/postgresql", 5432) == "/run/postgresql/.s.PGSQL.5432"
