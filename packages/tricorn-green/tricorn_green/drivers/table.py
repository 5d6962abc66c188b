"""Table of libraries and how greenlet workers treat them, one record each.

docs/how-it-works/greenlets.md is rendered from it.

Every claim has a test, except for libraries that cannot be installed everywhere: while the library waits, another
greenlet makes progress, or does not.
"""

from __future__ import annotations

from tricorn.libraries import LIBRARIES
from tricorn_green.cures import curl, kafka, ldap, mysql, odbc, oracle, sqlite
from tricorn_green.drivers import django, grpc, psycopg, psycopg2
from tricorn_green.drivers.records import Blocks, Check, Cooperative, Cure, Driver, Hook

OFFLOAD = "make blocking calls in a thread (`tricorn.offload`)"

_KAFKA_CURE = Cure(
    kafka.apply,
    "flush(), poll(), consume(), commit() and list_topics() run in threads, callbacks in the greenlet that waits.",
    ("confluent_kafka.cimpl",),
)
_MYSQL_CURE = Cure(
    mysql.apply,
    "connections, queries and transactions run in threads; fetching rows of an SSCursor does not.",
    ("MySQLdb._mysql",),
    is_proven=False,
)
_CURL_CURE = Cure(curl.apply, "transfers run in threads, callbacks in the greenlet that waits.")
_SQLITE_CURE = Cure(
    sqlite.apply,
    "each connection has a thread that makes its calls, at a cost of about 30 µs per call.",
    ("sqlite3.dbapi2",),
)
_ORACLE_CURE = Cure(oracle.apply, "after init_oracle_client(), calls of connections run in threads.", is_proven=False)
_ODBC_CURE = Cure(odbc.apply, "connections and cursors are proxies whose calls run in threads.", is_proven=False)
_LDAP_CURE = Cure(ldap.apply, "blocking calls of libldap run in threads.", ("ldap.ldapobject",), is_proven=False)

_PSYCOPG2 = Hook(
    psycopg2.apply,
    "its wait callback is set; `connect_timeout` works; the query of a killed greenlet is cancelled. "
    "COPY and large objects block, and the log says what to use instead; replication raises an error",
)
_PSYCOGREEN = Hook(psycopg2.apply_psycogreen, "`patch_psycopg()` keeps the callback that is set")
_PSYCOPG = Check(
    psycopg.apply,
    "cooperative, unless it was imported too early or PSYCOPG_WAIT_FUNC makes it wait in C: the log says so",
)
_DJANGO = Hook(django.apply, "connections are closed at the end of each request, regardless of CONN_MAX_AGE")
_MYSQLCLIENT = Blocks(f"Use PyMySQL, which is cooperative, or {OFFLOAD}.", cure=_MYSQL_CURE)
_KAFKA = Blocks(
    "flush(), poll() and consume() with a timeout wait in C. Call `poll(0)` after produce(), with a delivery callback, "
    "and flush() only at shutdown; consume in a separate process.",
    cure=_KAFKA_CURE,
)
_PYCURL = Blocks(
    "Use requests, urllib3 or httpx, which are cooperative, or CurlMulti with socket_action.", cure=_CURL_CURE
)
_SQLITE = Blocks(
    "Short queries of a local file are harmless, but waiting for a lock is not: keep the timeout of connect() low and "
    "transactions short. With many writers, use a database server.",
    calls=("connect",),
    level="info",
    cure=_SQLITE_CURE,
)
_ORACLE = Blocks(
    f"Remove the call of init_oracle_client(), since thin mode is cooperative, or {OFFLOAD}.",
    calls=("init_oracle_client",),
    when="in thick mode",
    cure=_ORACLE_CURE,
)
_CX_ORACLE = Blocks(f"Use its successor oracledb in thin mode, which is cooperative, or {OFFLOAD}.")
_ODBC = Blocks(f"ODBC always blocks: {OFFLOAD}, or use a pure Python driver for your database.", cure=_ODBC_CURE)
_PYMSSQL = Blocks(
    "Its queries wait cooperatively after `pymssql.set_wait_callback(gevent.socket.wait_read)` "
    "(eventlet: `lambda fd: eventlet.hubs.trampoline(fd, read=True)`); connecting still blocks."
)
_LDAP = Blocks(f"Use ldap3, which is cooperative, or {OFFLOAD}.", cure=_LDAP_CURE)
_BONSAI = Blocks("It also holds the GIL, so threads do not help: use ldap3, which is cooperative.")

DRIVERS = (
    Driver(LIBRARIES["psycopg2"], _PSYCOPG2, _PSYCOPG2),
    Driver(LIBRARIES["psycogreen"], _PSYCOGREEN, _PSYCOGREEN),
    Driver(LIBRARIES["psycopg"], _PSYCOPG, _PSYCOPG),
    Driver(LIBRARIES["Django"], _DJANGO, _DJANGO),
    Driver(
        LIBRARIES["grpcio"],
        Hook(grpc.apply, "`grpc.experimental.gevent.init_gevent()` is called before channels are created"),
        Blocks(f"It supports gevent but not eventlet: use the worker class gevent, or {OFFLOAD}."),
    ),
    Driver(LIBRARIES["mysqlclient"], _MYSQLCLIENT, _MYSQLCLIENT),
    Driver(LIBRARIES["PyMySQL"], Cooperative(), Cooperative()),
    Driver(LIBRARIES["oracledb"], _ORACLE, _ORACLE),
    Driver(LIBRARIES["cx_Oracle"], _CX_ORACLE, _CX_ORACLE),
    Driver(LIBRARIES["pyodbc"], _ODBC, _ODBC),
    Driver(LIBRARIES["pymssql"], _PYMSSQL, _PYMSSQL),
    Driver(LIBRARIES["sqlite3"], _SQLITE, _SQLITE),
    Driver(LIBRARIES["confluent-kafka"], _KAFKA, _KAFKA),
    Driver(LIBRARIES["redis"], Cooperative(), Cooperative()),
    Driver(LIBRARIES["pymongo"], Cooperative(), Cooperative()),
    Driver(LIBRARIES["pycurl"], _PYCURL, _PYCURL),
    Driver(LIBRARIES["requests"], Cooperative(), Cooperative()),
    Driver(LIBRARIES["urllib3"], Cooperative(), Cooperative()),
    Driver(LIBRARIES["httpx"], Cooperative(), Cooperative()),
    Driver(LIBRARIES["python-ldap"], _LDAP, _LDAP),
    Driver(LIBRARIES["ldap3"], Cooperative(), Cooperative()),
    Driver(LIBRARIES["bonsai"], _BONSAI, _BONSAI),
)

CURABLE = tuple(driver.title for driver in DRIVERS if isinstance(driver.gevent, Blocks) and driver.gevent.cure)
"""Valid names for the setting `cures`."""
