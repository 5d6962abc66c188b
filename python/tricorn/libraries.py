"""Libraries whose calls may block, with their purpose and what to use instead on an event loop."""

from __future__ import annotations

from tricorn.record import Record


class Library(Record):
    title: str
    """Its name on the package index."""
    imports: tuple[str, ...]
    """Modules whose import shows that the library is used."""
    what: str
    """Purpose of the library."""
    loop: str = ""
    """Alternative on an event loop. Empty if the library is asynchronous itself, or is not used in requests."""


_OFFLOAD = "`await tricorn.offload(…)(…)`"

_ALL = (
    Library("psycopg2", ("psycopg2",), "PostgreSQL", "psycopg's AsyncConnection, or asyncpg"),
    Library("psycogreen", ("psycogreen.gevent", "psycogreen.eventlet"), "for psycopg2"),
    Library("psycopg", ("psycopg",), "PostgreSQL"),
    Library("Django", ("django.db",), "its database connections"),
    Library("grpcio", ("grpc",), "gRPC"),
    Library("mysqlclient", ("MySQLdb",), "MySQL", "aiomysql or asyncmy"),
    Library("PyMySQL", ("pymysql",), "MySQL", "aiomysql, which is based on it"),
    Library("oracledb", ("oracledb",), "Oracle", "its own connect_async() in thin mode"),
    Library("cx_Oracle", ("cx_Oracle",), "Oracle", "its successor oracledb with connect_async()"),
    Library("pyodbc", ("pyodbc",), "ODBC", f"aioodbc, or {_OFFLOAD}"),
    Library("pymssql", ("pymssql",), "SQL Server", _OFFLOAD),
    Library("sqlite3", ("sqlite3.dbapi2", "sqlite3"), "SQLite", "aiosqlite"),
    Library("confluent-kafka", ("confluent_kafka",), "Kafka", "its own AIOProducer and AIOConsumer"),
    Library("redis", ("redis",), "Redis", "its own redis.asyncio"),
    Library("pymongo", ("pymongo",), "MongoDB", "its own AsyncMongoClient"),
    Library("pycurl", ("pycurl",), "HTTP and more", f"httpx.AsyncClient or aiohttp, or {_OFFLOAD}"),
    Library("requests", ("requests",), "HTTP", "httpx.AsyncClient or aiohttp"),
    Library("urllib3", ("urllib3",), "HTTP"),
    Library("httpx", ("httpx",), "HTTP"),
    Library("python-ldap", ("ldap",), "LDAP", f"bonsai's asyncio client, or {_OFFLOAD}"),
    Library("ldap3", ("ldap3",), "LDAP", f"bonsai's asyncio client, or {_OFFLOAD}"),
    Library("bonsai", ("bonsai",), "LDAP"),
)

LIBRARIES = {library.title: library for library in _ALL}
