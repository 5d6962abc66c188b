"""What is done with each driver that `doctor = heal` cures, and with tricorn.offload; run by tests.harness.sibling."""

from __future__ import annotations

import gc
import importlib
import io
import os
import pickle
import sys
import time
from typing import TYPE_CHECKING, Any

from tests.integration.drivers.jobs import WAIT

if TYPE_CHECKING:
    from tests.harness.sibling import Watch


def thread() -> int:
    """The real one: of `threading` each greenlet has its own."""
    from tricorn.unpatched import _thread

    return _thread.get_ident()


# Kafka


def producer(**settings: Any) -> Any:
    from confluent_kafka import Producer

    return Producer({"test.mock.num.brokers": 1, "test.mock.broker.rtt": int(WAIT * 1000), "linger.ms": 0, **settings})


def kafka_flushes(watch: Watch) -> None:
    import confluent_kafka

    original = confluent_kafka.Producer.__mro__[1]
    made = producer()
    reports: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        time.sleep(0)  # it may wait, as it could without threads
        reports.append((str(error), message.value().decode(), thread() == here))

    here = thread()
    made.produce("topic", b"first", on_delivery=delivered)
    with watch("first flush"):
        made.flush(30)
    made.produce("topic", b"value", None, -1, delivered)
    with watch("flush"):
        watch.notes["left"] = made.flush(30)
    watch.notes["reports"] = reports
    watch.notes["identity"] = [
        type(made) is confluent_kafka.Producer,
        isinstance(made, original),
        issubclass(confluent_kafka.SerializingProducer, confluent_kafka.Producer),
        repr(confluent_kafka.Producer) == repr(original),
    ]


def kafka_flushes_side_by_side(watch: Watch) -> None:
    producers = [producer() for _ in range(3)]
    for each in producers:
        each.produce("topic", b"first")
    for greenlet in [watch.spawn(each.flush, 30) for each in producers]:
        watch.wait(greenlet)
    for each in producers:
        each.produce("topic", b"value")
    with watch("flushes"):
        for greenlet in [watch.spawn(each.flush, 30) for each in producers]:
            watch.wait(greenlet)


def kafka_callback_raises(watch: Watch) -> None:
    """An error of a delivery report comes out of flush, as it does without threads."""
    made = producer()

    def delivered(*_: object) -> None:
        raise LookupError("of the report")

    made.produce("topic", b"value", on_delivery=delivered)
    try:
        made.flush(30)
    except LookupError as error:
        watch.notes["error"] = str(error)


def kafka_consumes(watch: Watch) -> None:
    from confluent_kafka import Consumer

    here = thread()
    statistics: list[bool] = []
    consumer = Consumer(
        {
            "test.mock.num.brokers": 1,
            "group.id": "group",
            "stats_cb": lambda _: statistics.append(thread() == here),
            "statistics.interval.ms": 50,
        }
    )
    consumer.subscribe(["topic"])
    while consumer.poll(WAIT) is not None:
        pass  # the mock has no such topic, and says so
    with watch("poll"):
        consumer.poll(WAIT)
    with watch("consume"):
        consumer.consume(1, WAIT)
    watch.notes["statistics"] = bool(statistics) and all(statistics)
    consumer.close()


def kafka_rebalances(watch: Watch) -> None:
    """A consumer of a topic that there is: it is assigned partitions, gets a message, commits, and leaves."""
    from confluent_kafka import Consumer

    made = producer(**{"test.mock.broker.rtt": 1})
    made.produce("orders", b"value")
    made.flush(30)
    (broker,) = made.list_topics(timeout=30).brokers.values()
    here = thread()
    seen: list[str] = []

    def assigned(consumer: Any, partitions: Any) -> None:
        seen.append(f"assigned here: {thread() == here}")
        consumer.assign(partitions)

    def revoked(consumer: Any, partitions: Any) -> None:
        seen.append(f"revoked here: {thread() == here}, of {len(partitions)}")
        consumer.unassign()

    settings = {"group.id": "group", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": f"{broker.host}:{broker.port}", **settings})
    consumer.subscribe(["orders"], on_assign=assigned, on_revoke=revoked)
    with watch("poll"):
        message = consumer.poll(30)
    watch.notes["value"] = message.value().decode()
    watch.notes["offset"] = consumer.commit(message, asynchronous=False)[0].offset
    consumer.close()
    watch.notes["seen"] = seen


# pycurl


def pycurl_transfers(watch: Watch, silent: int, page: int) -> None:
    import pycurl

    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, f"http://127.0.0.1:{silent}/")
    with watch("wait", pycurl.error):
        curl.perform()
    here = thread()
    pieces: list[bytes] = []
    headers: list[bool] = []
    curl.setopt(pycurl.URL, f"http://127.0.0.1:{page}/")
    curl.setopt(pycurl.WRITEFUNCTION, pieces.append)
    curl.setopt(pycurl.HEADERFUNCTION, lambda _: headers.append(thread() == here))
    curl.perform()
    watch.notes["text"] = b"".join(pieces).decode()
    watch.notes["headers here"] = bool(headers) and all(headers)
    buffer = io.BytesIO()
    other = pycurl.Curl()
    other.setopt(pycurl.URL, f"http://127.0.0.1:{page}/")
    other.setopt(pycurl.WRITEDATA, buffer)
    other.perform()
    watch.notes["buffer"] = buffer.getvalue().decode()
    watch.notes["status"] = other.getinfo(pycurl.RESPONSE_CODE)
    multi = pycurl.CurlMulti()
    slow = pycurl.Curl()
    slow.setopt(pycurl.URL, f"http://127.0.0.1:{silent}/")
    multi.add_handle(slow)
    while not any(multi.fdset()):
        multi.perform()
        time.sleep(0.01)
    time.sleep(0.05)  # it is connected, and the request is sent
    multi.perform()
    with watch("select"):
        multi.select(WAIT)


# sqlite3


def sqlite3_healed(watch: Watch, path: str) -> None:
    import sqlite3

    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("CREATE TABLE numbers (a int, b blob)")
    owner.executemany("INSERT INTO numbers VALUES (?, zeroblob(4))", [(number,) for number in range(3)])
    owner.execute("BEGIN EXCLUSIVE")
    other = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
    with watch("wait", sqlite3.OperationalError):
        other.execute("BEGIN EXCLUSIVE")
    owner.execute("COMMIT")
    other.row_factory = sqlite3.Row
    watch.notes["rows"] = [row["a"] for row in other.execute("SELECT a FROM numbers ORDER BY a")]
    watch.notes["row"] = other.cursor().execute("SELECT max(a) FROM numbers").fetchone()[0]
    with other:
        other.execute("UPDATE numbers SET a = a + 1")
    other.isolation_level = "DEFERRED"
    if sys.version_info >= (3, 11):
        with other.blobopen("numbers", "b", 1) as blob:
            blob.write(b"blob")
            blob.seek(0)
            watch.notes["blob"] = blob.read().decode()
    other.create_function("twice", 1, lambda value: 2 * value)
    watch.notes["function"] = other.execute("SELECT twice(21)").fetchone()[0]
    watch.notes["identity"] = [
        type(other) is sqlite3.Connection,
        isinstance(other.cursor(), sqlite3.Cursor),
        isinstance(other, sqlite3.Connection.__mro__[1]),
    ]
    other.commit()
    other.close()
    other.close()
    try:
        other.execute("SELECT 1")
    except sqlite3.ProgrammingError as error:
        watch.notes["closed"] = str(error)
    from tricorn_green import offload as offloading

    watch.notes["pinned"] = offloading.figures().pinned
    del owner, other
    gc.collect()  # a connection is part of a cycle with its cache of statements
    watch.notes["pinned at the end"] = offloading.figures().pinned


def sqlite3_more_than_threads(watch: Watch, path: str, count: int) -> None:
    import sqlite3

    connections = [sqlite3.connect(path) for _ in range(count)]
    for _ in range(2):
        watch.notes["sum"] = sum(each.execute("SELECT 1").fetchone()[0] for each in connections)
        connections.pop(0).close()
    watch.notes["last"] = connections[-1].execute("SELECT 1").fetchone()[0]


# Stand-ins for libraries that cannot be had everywhere


def stand_ins_wait(watch: Watch) -> None:
    import ldap.ldapobject
    import MySQLdb
    import pyodbc

    connection = MySQLdb.connect()
    with watch("mysqlclient"):
        watch.notes["mysqlclient"] = connection.query("SELECT 1")
    directory = ldap.ldapobject.SimpleLDAPObject()
    with watch("python-ldap"):
        watch.notes["python-ldap"] = directory.search("base")
    with watch("pyodbc connect"):
        base = pyodbc.connect("DSN")
    with base.cursor() as cursor, watch("pyodbc"):
        watch.notes["pyodbc"] = [list(row) for row in cursor.execute("SELECT 1")]
    watch.notes["is"] = [isinstance(base, pyodbc.Connection), isinstance(cursor, pyodbc.Cursor), bool(base)]
    watch.notes["its own"] = [cursor.connection is not None, base.autocommit]
    base.autocommit = True
    watch.notes["set"] = base.autocommit


# What the operator has named, and tricorn.offload


def asked_for(watch: Watch) -> None:
    module = importlib.import_module("slow_library")
    handle = module.Handle()
    with watch("method"):
        watch.notes["method"] = handle.ask(WAIT)
    with watch("function"):
        watch.notes["function"] = module.wait(WAIT)
    watch.notes["pickled"] = type(pickle.loads(pickle.dumps(handle))) is module.Handle
    pinned = module.Pinned()
    watch.notes["pinned"] = len({pinned.made_by, pinned.where(), pinned.where()})
    watch.notes["another"] = module.Pinned().made_by != pinned.made_by
    here = thread()
    watch.notes["away"] = pinned.made_by != here


def imported_before(watch: Watch) -> None:
    importlib.import_module("confluent_kafka")


def offloads(watch: Watch) -> None:
    import contextvars
    import ctypes
    import traceback

    import tricorn
    from tricorn_green import offload as offloading

    c = ctypes.CDLL(None)
    microseconds = int(WAIT * 1e6)
    with watch("call"):
        tricorn.offload(c.usleep)(microseconds)

    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    watch.notes["context"] = tricorn.offload(variable.get)()

    @tricorn.offload
    def fails() -> None:
        raise LookupError("of the call")

    try:
        fails()
    except LookupError as error:
        watch.notes["frames"] = [frame.name for frame in traceback.extract_tb(error.__traceback__)]

    busy: list[int] = []

    class Handle:
        @tricorn.offload(serial=True)
        def ask(self) -> None:
            busy.append(1)
            watch.notes["together"] = max(watch.notes.get("together", 0), len(busy))
            c.usleep(20_000)
            busy.pop()

    handle = Handle()
    for greenlet in [watch.spawn(handle.ask) for _ in range(3)]:
        watch.wait(greenlet)

    order: list[int] = []

    def one(number: int) -> None:
        order.append(number)
        c.usleep(10_000)

    for greenlet in [watch.spawn(tricorn.offload(one), number) for number in range(12)]:
        watch.wait(greenlet)
    watch.notes["order"] = order
    watch.notes["threads"] = offloading.figures().threads

    @tricorn.offload(affinity="process")
    def single() -> int:
        return thread()

    watch.notes["single"] = len({single() for _ in range(5)})


def abandons(watch: Watch) -> None:
    import ctypes

    import tricorn
    from tricorn_green import offload as offloading

    c = ctypes.CDLL(None)
    timeout = watch.timeout(0.1)
    try:
        tricorn.offload(c.usleep)(int(WAIT * 1e6))
    except BaseException as error:
        watch.notes["is the timeout"] = error is timeout
    watch.notes["during"] = offloading.figures().abandoned
    while offloading.is_busy():
        time.sleep(0.01)
    figures = offloading.figures()
    watch.notes["after"] = [figures.abandoned, figures.abandoned_ever]
    # Those that have not begun are not made.
    made: list[int] = []
    hogs = [watch.spawn(tricorn.offload(c.usleep), 200_000) for _ in range(4)]
    waiting = watch.spawn(tricorn.offload(made.append), 1)
    time.sleep(0.02)
    waiting.kill()
    for greenlet in hogs:
        watch.wait(greenlet)
    tricorn.offload(int)()
    watch.notes["made"] = made


def late(watch: Watch) -> None:
    import ctypes

    import tricorn

    c = ctypes.CDLL(None)
    for greenlet in [watch.spawn(tricorn.offload(c.usleep), 700_000) for _ in range(12)]:
        watch.wait(greenlet)


def calls_back(watch: Watch) -> None:
    """A library calls back, and is called from there again: by the thread that it knows."""
    import tricorn
    from tricorn_green.offload import bring

    here = thread()

    class Library:
        def serve(self, callback: Any) -> list[Any]:
            return [thread() != here, bring(callback, self), thread()]

        def again(self) -> int:
            return thread()

        @tricorn.offload(serial=True)
        def ask(self) -> Any:
            return self.serve(callback)

        @tricorn.offload(serial=True)
        def nested(self) -> int:
            return self.again()

    def callback(library: Library) -> list[Any]:
        time.sleep(0.01)
        return [thread() == here, library.nested()]

    away, (at_home, nested), outer = Library().ask()
    watch.notes["away"], watch.notes["at home"] = away, at_home
    watch.notes["nested on the thread"] = nested == outer
    for greenlet in [watch.spawn(Library().ask) for _ in range(12)]:  # more than threads, all of which visit
        watch.wait(greenlet)


def locks(watch: Watch) -> None:
    """Those that threads of the pool take."""
    from tricorn_green.offload import _process, call, pool

    watch.notes["locks"] = [str(type(each)) for each in (_process.shared._lock, pool._lanes_lock, call._lock)]


def forks(watch: Watch) -> None:
    import tricorn

    tricorn.offload(int)()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 7 if tricorn.offload(lambda: 7)() == 7 else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    watch.notes["status"] = os.waitstatus_to_exitcode(status)
    watch.notes["here"] = tricorn.offload(lambda: 8)()


def kafka_flushes_while_others_produce(watch: Watch) -> None:
    """The queue is never empty: librdkafka's own flush would wait until its time is over."""
    made = producer()
    made.produce("topic", b"first")
    made.flush(30)

    def produce() -> None:
        while True:
            made.produce("topic", b"of others")
            time.sleep(WAIT / 8)

    watch.spawn(produce)
    time.sleep(WAIT / 2)
    reports: list[int] = []
    made.produce("topic", b"value", on_delivery=lambda *_: reports.append(1))
    with watch("flush"):
        watch.notes["left"] = made.flush(10)
    watch.notes["reports"] = len(reports)
    with watch("short"):
        watch.notes["left after a short time"] = made.flush(WAIT / 10) > 0


def kafka_configured_reports(watch: Watch) -> None:
    """`on_delivery` of the configuration is for messages that have none of their own; and an error of produce()."""
    reports: list[str] = []
    made = producer(on_delivery=lambda error, message: reports.append(message.value().decode()))
    made.produce("topic", b"configured")
    made.produce("topic", b"own", on_delivery=lambda *_: reports.append("its own"))
    try:
        made.produce("topic", 3)
    except TypeError:
        watch.notes["refused"] = True
    watch.notes["left"] = made.flush(30)
    watch.notes["reports"] = sorted(reports)
    only_errors = producer(**{"delivery.report.only.error": True})
    only_errors.produce("topic", b"value")
    watch.notes["only errors"] = only_errors.flush(30)
