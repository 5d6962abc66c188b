"""Each cure's claim: while a healed driver waits another greenlet gets on, and the application notices no threads.

Libraries that cannot be had everywhere (STAND_INS) are modules of their names whose calls sleep in C: what is proven
is that the right names are replaced, and not that the library bears it.
"""

from __future__ import annotations

import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tricorn_green.drivers.table import CURABLE, DRIVERS

from tests.harness import sibling
from tests.harness.needs import needs
from tests.harness.sibling import THREADS, Late, Outcome
from tests.integration.drivers.jobs import WAIT

JOBS = "tests.integration.drivers.healing"
HEAL = {"doctor": "heal"}
STAND_INS = {"mysqlclient", "pyodbc", "python-ldap", "oracledb"}
HEALED = {"confluent-kafka", "pycurl", "sqlite3"}

hubs = pytest.mark.parametrize("hub", ["gevent", "eventlet"])


def run(hub: str, job: str, *arguments: object, **options: object) -> Outcome:
    needs(hub)
    return sibling.run(hub, f"{JOBS}:{job}", *arguments, **{"care": HEAL, **options})  # type: ignore[arg-type]


def library(directory: Path) -> dict[str, str]:
    return {"PYTHONPATH": f"{directory}:{':'.join(sys.path)}"}


def test_every_record_with_a_cure_is_tested_or_says_that_it_is_not() -> None:
    proven = {driver.title for driver in DRIVERS if getattr(getattr(driver.gevent, "cure", None), "is_proven", False)}
    assert proven == HEALED
    assert set(CURABLE) == HEALED | STAND_INS


# Kafka


@hubs
def test_a_flush_lets_siblings_get_on_and_keeps_its_promises(hub: str) -> None:
    needs("confluent_kafka")
    outcome = run(hub, "kafka_flushes")
    assert outcome["flush"].seconds > 0.8 * WAIT
    assert outcome["flush"].advanced, outcome["flush"]
    assert outcome.notes["left"] == 0, "all messages are delivered when it returns"
    assert outcome.notes["reports"] == [["None", "first", True], ["None", "value", True]], "on the thread of the hub"
    assert outcome.notes["identity"] == [True] * 4
    assert any(line.startswith("confluent-kafka (Kafka): flush()") for line in outcome.lines("info"))
    assert outcome.lines("warning") == []


@hubs
def test_flushes_of_several_producers_wait_side_by_side(hub: str) -> None:
    needs("confluent_kafka")
    outcome = run(hub, "kafka_flushes_side_by_side")
    assert outcome["flushes"].seconds < 2.5 * WAIT, "three, one after another, take three times as long"


@hubs
def test_a_flush_is_for_what_was_produced_before_it(hub: str) -> None:
    needs("confluent_kafka")
    outcome = run(hub, "kafka_flushes_while_others_produce")
    assert outcome["flush"].seconds < 5 * WAIT
    assert outcome["short"].seconds < 0.8 * WAIT
    assert outcome.notes == {"left": 0, "reports": 1, "left after a short time": True}


def test_reports_of_the_configuration_are_made_too() -> None:
    needs("confluent_kafka")
    notes = run("gevent", "kafka_configured_reports").notes
    assert notes == {"refused": True, "left": 0, "reports": ["configured", "its own"], "only errors": 0}


def test_an_error_of_a_delivery_report_comes_out_of_flush() -> None:
    needs("confluent_kafka")
    assert run("gevent", "kafka_callback_raises").notes == {"error": "of the report"}


@hubs
def test_a_consumer_lets_siblings_get_on(hub: str) -> None:
    needs("confluent_kafka")
    outcome = run(hub, "kafka_consumes")
    assert outcome["poll"].advanced, outcome["poll"]
    assert outcome["consume"].advanced, outcome["consume"]
    assert outcome.notes["statistics"], "callbacks run on the thread of the hub"


@hubs
def test_rebalances_are_made_by_the_greenlet_that_polls(hub: str) -> None:
    needs("confluent_kafka")
    outcome = run(hub, "kafka_rebalances")
    assert outcome["poll"].advanced, outcome["poll"]
    assert (outcome.notes["value"], outcome.notes["offset"]) == ("value", 1)
    assert outcome.notes["seen"] == ["assigned here: True", "revoked here: True, of 4"]


# pycurl, sqlite3


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        """It says nothing."""


@pytest.fixture
def page() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@hubs
def test_a_transfer_lets_siblings_get_on(hub: str, page: int) -> None:
    needs("pycurl")
    with Late(WAIT) as silent:
        outcome = run(hub, "pycurl_transfers", silent.port, page)
    assert outcome["wait"].advanced, outcome["wait"]
    assert outcome["select"].advanced, outcome["select"]
    assert outcome.notes == {"text": "hello", "headers here": True, "buffer": "hello", "status": 200}


@hubs
def test_sqlite_waits_for_a_lock_on_a_thread_of_the_connection(hub: str, tmp_path: Path) -> None:
    outcome = run(hub, "sqlite3_healed", str(tmp_path / "file"))
    assert outcome["wait"].error == "OperationalError: database is locked"
    assert outcome["wait"].advanced, outcome["wait"]
    notes = outcome.notes
    assert (notes["rows"], notes["row"], notes["function"]) == ([0, 1, 2], 2, 42)
    assert notes.get("blob", "blob") == "blob"
    assert notes["identity"] == [True] * 3
    assert notes["closed"] == "Cannot operate on a closed database."
    assert (notes["pinned"], notes["pinned at the end"]) == (1, 0)


@hubs
def test_connections_beyond_the_threads_are_as_they_were_and_the_log_says_so(hub: str, tmp_path: Path) -> None:
    outcome = run(hub, "sqlite3_more_than_threads", str(tmp_path / "file"), THREADS + 3)
    assert outcome.notes == {"sum": THREADS + 2, "last": 1}
    (line,) = outcome.lines("warning")
    assert line.startswith(f"All {THREADS} offload threads belong to open objects")


# Stand-ins

MYSQL = """
import ctypes
class connection:
    def query(self, text):
        ctypes.CDLL(None).usleep(%d)
        return "asked"
"""
CONNECTIONS = "from MySQLdb._mysql import connection\nclass Connection(connection): pass\nconnect = Connection\n"
LDAP = """
import ctypes, threading
class SimpleLDAPObject:
    def __init__(self):
        self.lock = threading.RLock()
    def _ldap_call(self, func, *args, **kwargs):
        with self.lock:
            return func(*args, **kwargs)
    def search(self, base):
        return self._ldap_call(self._search, base)
    def _search(self, base):
        ctypes.CDLL(None).usleep(%d)
        return base
"""
ODBC = """
import ctypes
def wait():
    ctypes.CDLL(None).usleep(%d)
class Cursor:
    def __init__(self, connection):
        self.connection = connection
    def execute(self, text):
        wait()
        self.rows = iter([(1,), (2,)])
        return self
    def __iter__(self):
        return self
    def __next__(self):
        return next(self.rows)
    def __enter__(self):
        return self
    def __exit__(self, *_):
        pass
class Connection:
    autocommit = False
    def cursor(self):
        return Cursor(self)
def connect(dsn):
    wait()
    return Connection()
"""


@hubs
def test_the_names_that_wait_are_those_that_are_replaced(hub: str, tmp_path: Path) -> None:
    microseconds = int(WAIT * 1e6)
    for name, text in {
        "MySQLdb/__init__.py": "from MySQLdb.connections import connect\n",
        "MySQLdb/_mysql.py": MYSQL % microseconds,
        "MySQLdb/connections.py": CONNECTIONS,
        "ldap/__init__.py": "",
        "ldap/ldapobject.py": LDAP % microseconds,
        "pyodbc.py": ODBC % microseconds,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    outcome = run(hub, "stand_ins_wait", env=library(tmp_path))
    for name in ("mysqlclient", "python-ldap", "pyodbc connect", "pyodbc"):
        assert outcome[name].advanced, (name, outcome[name])
    notes = outcome.notes
    assert (notes["mysqlclient"], notes["python-ldap"], notes["pyodbc"]) == ("asked", "base", [[1], [2]])
    assert notes["is"] == [True] * 3
    assert (notes["its own"], notes["set"]) == ([True, False], True)


# Limits of healing


def test_a_library_that_is_not_named_is_not_healed() -> None:
    needs("confluent_kafka")
    outcome = run("gevent", "imported_before", care={"doctor": "heal", "cures": ["pycurl"]})
    assert [line.partition(" ")[0] for line in outcome.lines("warning")] == ["confluent-kafka"]


def test_with_doctor_off_nothing_is_said() -> None:
    needs("confluent_kafka")
    assert run("gevent", "imported_before", care={"doctor": "off"}).lines() == []


def test_what_was_imported_before_is_not_healed_and_the_place_is_told(tmp_path: Path) -> None:
    needs("confluent_kafka")
    (tmp_path / "too_early.py").write_text("from confluent_kafka import Producer\n")
    outcome = run("gevent", "imported_before", early=["too_early"], env=library(tmp_path))
    (line,) = outcome.lines("warning")
    place = f"Producer in too_early ({tmp_path / 'too_early.py'})"
    assert line.startswith(f"confluent-kafka is not healed: it was imported before (by {place})")


# The setting `offload`

SLOW = """
import ctypes
from tricorn.unpatched import _thread
def wait(seconds):
    ctypes.CDLL(None).usleep(int(seconds * 1e6))
    return "waited"
class Handle:
    def ask(self, seconds):
        return wait(seconds)
class Pinned:
    def __init__(self):
        self.made_by = _thread.get_ident()
    def where(self):
        return _thread.get_ident()
"""
TARGETS = ["slow_library:wait", "slow_library:Handle.ask", "slow_library:Pinned.where@object"]


@hubs
def test_what_the_operator_names_lets_siblings_get_on(hub: str, tmp_path: Path) -> None:
    (tmp_path / "slow_library.py").write_text(SLOW)
    outcome = run(hub, "asked_for", care={"offload": TARGETS}, env=library(tmp_path))
    assert outcome["method"].advanced, outcome["method"]
    assert outcome["function"].advanced, outcome["function"]
    assert outcome.notes == {
        "method": "waited", "function": "waited", "pickled": True, "pinned": 1, "another": True, "away": True,
    }  # fmt: skip
    assert outcome.lines("info") == [f"{target} is called by threads of the server (offload)." for target in TARGETS]


def test_a_name_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "slow_library.py").write_text(SLOW)
    targets = [*TARGETS, "slow_library:Handle.asks"]
    outcome = run("gevent", "asked_for", care={"offload": targets}, env=library(tmp_path))
    assert outcome.lines("warning") == [
        "offload: slow_library:Handle.asks is not offloaded: there is no asks in Handle; did you mean 'ask'?"
    ]


def test_names_that_others_have_taken_before_are_told(tmp_path: Path) -> None:
    (tmp_path / "slow_library.py").write_text(SLOW)
    (tmp_path / "too_early.py").write_text("from slow_library import wait\n")
    outcome = run("gevent", "asked_for", care={"offload": TARGETS}, early=["too_early"], env=library(tmp_path))
    (line,) = outcome.lines("warning")
    assert line.startswith("offload: slow_library:wait was imported before it could be replaced: wait in too_early (")
    assert outcome["method"].advanced, "a class in Python can be changed all the same"


# tricorn.offload


@hubs
def test_an_offloaded_call(hub: str) -> None:
    outcome = run(hub, "offloads")
    assert outcome["call"].advanced, outcome["call"]
    notes = outcome.notes
    assert notes["context"] == "set"
    assert notes["frames"][0] == "offloads"
    assert notes["frames"][-1] == "fails", "the traceback is that of the thread"
    assert notes["together"] == 1, "calls of one object do not meet"
    assert notes["order"] == list(range(12)), "first come, first served"
    assert notes["threads"] <= THREADS
    assert notes["single"] == 1


@hubs
def test_a_call_whose_greenlet_is_gone_is_counted_and_told(hub: str) -> None:
    outcome = run(hub, "abandons")
    assert outcome.notes == {"is the timeout": True, "during": 1, "after": [0, 1], "made": []}
    (line,) = outcome.lines("warning")
    assert "usleep is still running in its thread after its request has ended (1 such calls" in line


def test_a_long_wait_for_a_thread_is_told() -> None:
    (line,) = run("gevent", "late").lines("warning")
    assert f"for a thread: all {THREADS} are busy" in line
    assert line.endswith("Raise offload_threads.")


@hubs
def test_threads_whose_pool_was_there_before_the_patch_wait_for_no_greenlet(hub: str) -> None:
    assert run(hub, "locks", early=["tricorn_green.offload"]).notes == {"locks": ["<class '_thread.RLock'>"] * 3}


@hubs
def test_callbacks_come_home_and_may_call_again(hub: str) -> None:
    assert run(hub, "calls_back").notes == {"away": True, "at home": True, "nested on the thread": True}


@hubs
def test_a_forked_child_makes_threads_anew(hub: str) -> None:
    assert run(hub, "forks").notes == {"status": 7, "here": 8}
