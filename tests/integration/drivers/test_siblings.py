"""Each record's claim: while the driver waits, another greenlet gets on, or gets nowhere. In a process of its own each.

Of STAND_INS only the line in the log is tested, with an empty module of that name: they cannot be had everywhere, or
(pyodbc) have nothing here that they could wait for.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tricorn_green.drivers.records import Blocks, Cooperative, line
from tricorn_green.drivers.table import DRIVERS

from tests.harness import sibling
from tests.harness.needs import needs
from tests.harness.sibling import GrpcServer, Late, Outcome
from tests.integration.drivers.jobs import WAIT

JOBS = "tests.integration.drivers.jobs"
HUBS = ["gevent", "eventlet"]
RECORDS = {driver.title: driver for driver in DRIVERS}
STAND_INS = ["mysqlclient", "cx_Oracle", "python-ldap", "bonsai", "pyodbc", "pymssql"]

hubs = pytest.mark.parametrize("hub", HUBS)


def run(hub: str, job: str, *arguments: object, **options: object) -> Outcome:
    needs(hub)
    return sibling.run(hub, f"{JOBS}:{job}", *arguments, **options)  # type: ignore[arg-type]


COOPERATIVE = {
    "PyMySQL": "pymysql_waits",
    "oracledb": "oracledb_waits",
    "redis": "redis_waits",
    "requests": "requests_waits",
    "urllib3": "urllib3_waits",
    "httpx": "httpx_waits",
    "pymongo": "pymongo_waits",
    "ldap3": "ldap3_waits",
}
BLOCKING = {"confluent-kafka": "kafka_waits", "pycurl": "pycurl_waits", "pymssql": "pymssql_waits"}


def all_of(hub: str, jobs: Mapping[str, str]) -> Outcome:
    """One process for all that are installed; they wait for a server that closes without a word after a while."""
    here = {title: job for title, job in jobs.items() if importlib.util.find_spec(RECORDS[title].imports[0])}
    with Late(WAIT) as server:
        outcome = run(hub, "several", server.port, here)
    assert not set(outcome.notes) & set(here), outcome.notes
    return outcome


@pytest.fixture(scope="module", params=HUBS)
def cooperative(request: pytest.FixtureRequest) -> Outcome:
    return all_of(request.param, COOPERATIVE)


@pytest.fixture(scope="module", params=HUBS)
def blocking(request: pytest.FixtureRequest) -> tuple[str, Outcome]:
    return request.param, all_of(request.param, BLOCKING)


@pytest.mark.parametrize("title", COOPERATIVE)
def test_pure_python_waits_while_siblings_get_on(title: str, cooperative: Outcome) -> None:
    needs(RECORDS[title].imports[0])
    progress = cooperative[f"{title} wait"]
    assert progress.error
    assert progress.advanced, progress
    assert [text for text in cooperative.lines() if title in text.partition(" ")[0]] == []


def test_every_record_of_a_cooperative_driver_is_tested() -> None:
    claimed = {driver.title for driver in DRIVERS if isinstance(driver.gevent, Cooperative)}
    assert claimed - set(COOPERATIVE) == set()


@pytest.mark.parametrize("title", BLOCKING)
def test_what_waits_in_c_stops_its_siblings_and_the_log_says_so(title: str, blocking: tuple[str, Outcome]) -> None:
    needs(RECORDS[title].imports[0])
    hub, outcome = blocking
    progress = outcome[f"{title} wait"]
    assert progress.seconds > 0.8 * WAIT
    assert progress.stood, progress
    assert [text for text in outcome.lines("warning") if text.startswith(title)] == [expected(hub, title)]


@hubs
def test_sqlite_stops_its_siblings_while_it_waits_for_a_lock(hub: str, tmp_path: Path) -> None:
    outcome = run(hub, "sqlite3_waits", str(tmp_path / "file"))
    assert outcome["wait"].error == "OperationalError: database is locked"
    assert outcome["wait"].stood, outcome["wait"]
    assert outcome.notes["before connect"] == 0, "many import it who never use it"
    assert outcome.lines("info") == [expected(hub, "sqlite3")], "once, however often it connects"


@hubs
def test_oracles_thick_mode_is_named_when_it_is_switched_on(hub: str) -> None:
    needs("oracledb")
    outcome = run(hub, "oracledb_goes_thick")
    assert outcome.notes["before"] == []
    assert "DPI-1047" in outcome.notes["error"], "there is no client library here; the call went through"
    assert outcome.notes["after"] == [expected(hub, "oracledb")]


@hubs
def test_a_line_once_in_the_log(hub: str, tmp_path: Path) -> None:
    names = [RECORDS[title].imports[0] for title in STAND_INS]
    for name in names:
        (tmp_path / f"{name}.py").write_text("")
    outcome = run(hub, "imported", *names, env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"})
    assert outcome.lines() == [expected(hub, title) for title in STAND_INS]


def expected(hub: str, title: str) -> str:
    treatment = RECORDS[title].under(hub)
    assert isinstance(treatment, Blocks)
    return line(RECORDS[title], treatment)


# gRPC


@pytest.fixture(scope="module")
def grpc_port() -> Iterator[int]:
    needs("grpc")
    with GrpcServer() as port:
        yield port


def test_grpc_is_cooperative_under_gevent(grpc_port: int) -> None:
    outcome = run("gevent", "grpc_waits", grpc_port)
    assert outcome.notes["answer"] == "waited"
    assert outcome["call"].advanced, outcome["call"]
    assert outcome.lines() == []


def test_grpc_blocks_under_eventlet(grpc_port: int) -> None:
    outcome = run("eventlet", "grpc_waits", grpc_port)
    assert outcome["call"].stood, outcome["call"]
    assert outcome.lines() == [expected("eventlet", "grpcio")]


def test_the_harness_tells_waiting_from_standing() -> None:
    assert sibling.Progress(1.0, 100, 0.01).advanced
    assert not sibling.Progress(1.0, 100, 0.01).stood
    assert sibling.Progress(1.0, 2, 0.95).stood
    assert not sibling.Progress(1.0, 2, 0.95).advanced
