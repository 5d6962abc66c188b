"""psycopg2's wait callback, with a psycopg2 and a hub that do as they are told. Real ones: integration/drivers."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.metrics.scoreboard import Scoreboard
from tricorn_green.database import Connections, Refusals
from tricorn_green.drivers import psycopg2 as driver
from tricorn_green.drivers.records import Ground
from tricorn_green.drivers.waits import Waits

OK, READ, WRITE = 0, 1, 2
SETUP, READY = 0, 1


class OperationalError(Exception):
    pass


class ProgrammingError(Exception):
    pass


class Killed(BaseException):
    pass


class Connection:
    def __init__(self, states: list[Any], status: int = READY, parameters: dict[str, str] | None = None) -> None:
        self.status = status
        self.closed = 0
        self.cancelled = 0
        self.dsn = repr(parameters)
        self.asked = 0
        self._parameters = parameters or {}
        self._states = iter(states)

    @property
    def info(self) -> Any:
        self.asked += 1
        return SimpleNamespace(dsn_parameters=self._parameters)

    def poll(self) -> int:
        state = next(self._states)
        if isinstance(state, Exception):
            raise state
        return int(state)

    def fileno(self) -> int:
        return 7

    def cancel(self) -> None:
        self.cancelled += 1


class Bench:
    def __init__(self) -> None:
        self.waited: list[str] = []
        self.raises: BaseException | None = None
        self.in_time = True
        self.told: list[tuple[str, str]] = []
        self.page = Scoreboard(bytearray(4096))
        self.connections = Connections(self.page, self._tell, lambda _, report: report())
        self.callback: Callable[[Any], None]
        extensions = SimpleNamespace(
            POLL_OK=OK, POLL_READ=READ, POLL_WRITE=WRITE, STATUS_SETUP=SETUP, set_wait_callback=self._set
        )
        self.psycopg2 = SimpleNamespace(
            extensions=extensions, OperationalError=OperationalError, ProgrammingError=ProgrammingError
        )
        ground = Ground("gevent", None, self.connections)  # type: ignore[arg-type]
        how = Waits(self._wait("read"), self._wait("write"), self._wait_in_time, lambda function, seconds: function())
        self._set(driver.make_callback(self.psycopg2, how, ground))

    def _tell(self, address: str, refusals: Refusals) -> None:
        self.told.append((address, refusals.text))

    def _set(self, callback: Callable[[Any], None]) -> None:
        self.callback = callback

    def _wait(self, what: str) -> Callable[[int], None]:
        def wait(descriptor: int) -> None:
            assert descriptor == 7
            self.waited.append(what)
            if self.raises is not None:
                raise self.raises

        return wait

    def _wait_in_time(self, descriptor: int, write: bool, seconds: float) -> bool:
        self.waited.append(f"{'write' if write else 'read'} for {round(seconds)}")
        return self.in_time


@pytest.fixture
def bench() -> Bench:
    return Bench()


class TestQuery:
    def test_it_waits_for_what_libpq_wants(self, bench: Bench) -> None:
        bench.callback(Connection([WRITE, READ, READ, OK]))
        assert bench.waited == ["write", "read", "read"]

    def test_killed_while_it_waits_it_is_cancelled(self, bench: Bench) -> None:
        connection = Connection([READ, OK])
        bench.raises = Killed()
        with pytest.raises(Killed):
            bench.callback(connection)
        assert connection.cancelled == 1

    def test_what_the_server_broke_off_is_not_cancelled(self, bench: Bench) -> None:
        connection = Connection([READ, OperationalError("server closed the connection unexpectedly")])
        with pytest.raises(OperationalError):
            bench.callback(connection)
        assert connection.cancelled == 0

    def test_a_closed_connection_cannot_be_cancelled(self, bench: Bench) -> None:
        connection = Connection([READ, OK])
        connection.closed = 1
        bench.raises = Killed()
        with pytest.raises(Killed):
            bench.callback(connection)
        assert connection.cancelled == 0


class TestConnect:
    def test_without_a_limit_it_waits_as_long_as_it_takes(self, bench: Bench) -> None:
        connection = Connection([WRITE, READ, OK], SETUP, {"host": "db"})
        bench.callback(connection)
        assert bench.waited == ["write", "read"]
        assert bench.page.databases == 1

    def test_the_limit_is_for_the_whole(self, bench: Bench) -> None:
        bench.callback(Connection([WRITE, READ, OK], SETUP, {"host": "db", "connect_timeout": "9"}))
        assert bench.waited == ["write for 9", "read for 9"]

    def test_too_late_names_the_address_and_the_limit(self, bench: Bench) -> None:
        bench.in_time = False
        connection = Connection([WRITE, OK], SETUP, {"host": "db", "port": "6432", "connect_timeout": "9"})
        with pytest.raises(OperationalError, match=r'"db:6432" failed: timeout expired \(connect_timeout: 9 s\)'):
            bench.callback(connection)
        assert bench.page.databases == 0
        assert bench.told == []

    def test_a_refusal_is_told(self, bench: Bench) -> None:
        refusal = OperationalError("FATAL:  sorry, too many clients already\n")
        with pytest.raises(OperationalError):
            bench.callback(Connection([WRITE, READ, refusal], SETUP, {"host": "db"}))
        assert bench.told == [("db:5432", "sorry, too many clients already")]

    def test_what_a_dsn_means_is_asked_once(self, bench: Bench) -> None:
        first, second = (Connection([OK], SETUP, {"host": "db"}) for _ in range(2))
        bench.callback(first)
        bench.callback(second)
        assert (first.asked, second.asked) == (1, 0)

    def test_dsns_without_end_do_not_fill_the_memory(self, bench: Bench) -> None:
        for number in range(3 * driver.MOST_TARGETS):
            bench.callback(Connection([OK], SETUP, {"host": f"db{number}"}))
        (connect,) = (
            cell.cell_contents
            for cell in bench.callback.__closure__ or ()  # type: ignore[attr-defined]
            if isinstance(cell.cell_contents, driver._Connect)
        )
        assert len(connect._targets) <= driver.MOST_TARGETS


@pytest.mark.parametrize(
    ("parameters", "address", "seconds"),
    [
        ({}, "localhost:5432", 0),
        ({"host": "db", "port": "6432"}, "db:6432", 0),
        ({"hostaddr": "10.0.0.1"}, "10.0.0.1:5432", 0),
        ({"host": "/run/postgresql", "port": "5433"}, "/run/postgresql/.s.PGSQL.5433", 0),
        ({"host": "a,b", "port": "1,2", "connect_timeout": "3"}, "a:1,b:2", 6),
        ({"host": "a,b", "port": "1"}, "a:1,b:1", 0),
        ({"host": "a", "connect_timeout": "-1"}, "a:5432", 0),
        ({"host": "a", "connect_timeout": "soon"}, "a:5432", 0),
    ],
)
def test_what_parameters_mean(parameters: dict[str, str], address: str, seconds: float) -> None:
    assert driver._target_of(parameters) == (address, seconds)


def test_errors_of_green_mode_say_what_to_do_and_others_are_left_alone() -> None:
    class Error(Exception):
        pass

    driver._explain(Error)
    driver._explain(Error)
    text = str(Error("start_replication cannot be used with an asynchronous callback."))
    assert text.count("does not support replication") == 1
    for said in (
        "execute cannot be used while an asynchronous query is underway",
        "a single async query can be executed on the same connection",
    ):
        assert str(Error(said)) == said + driver.SHARED
    assert str(Error("syntax error")) == "syntax error"
    assert str(Error()) == ""


class TestPsycogreen:
    def module(self, current: Any) -> tuple[Any, list[int]]:
        calls: list[int] = []
        extensions = SimpleNamespace(get_wait_callback=lambda: current)
        return SimpleNamespace(extensions=extensions, patch_psycopg=lambda: calls.append(1)), calls

    def test_our_callback_stays(self) -> None:
        module, calls = self.module(SimpleNamespace(__tricorn__=True))
        driver.apply_psycogreen(module, None)  # type: ignore[arg-type]
        module.patch_psycopg()
        assert calls == []

    def test_another_one_is_replaced_as_the_application_asks(self) -> None:
        module, calls = self.module(None)
        for _ in range(2):  # as if it was reloaded
            driver.apply_psycogreen(module, None)  # type: ignore[arg-type]
        module.patch_psycopg()
        assert len(calls) == 1
