"""Compares the connections that the application may open with the limits of its databases.

Finds Django's DATABASES, SQLAlchemy engines and psycopg_pool pools, wherever the application keeps them. Connections
that it opens itself are not found.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from tricorn.record import Record
from tricorn_tools.doctor.check.finding import Finding, Severity
from tricorn_tools.doctor.check.scene import Scene

LIMITS = {"postgresql": 97, "mysql": 151}
"""Default connection limits. PostgreSQL: 100, three of them for superusers."""
NAMES = {"postgresql": "PostgreSQL", "mysql": "MySQL"}
LONG_NAMES = {"postgres": "postgresql", "postgis": "postgresql", "mariadb": "mysql"}


class Demand(Record):
    """Connections that one process may open to one database."""

    kind: str
    address: str
    most: int
    """Connections of a process, at most."""
    what: str
    """Setting of the application that says so: `the pool of an engine of SQLAlchemy (5 + 10)`."""
    ask: Callable[[tuple[str, ...]], list[Any]]
    """Runs queries that have one value each, over a connection of its own."""
    bound: int = 0
    """Size of the pool, if it is smaller than the number of requests a worker runs; else 0."""


class Refused(Exception):
    """The database could not be asked, for a reason in words."""


def examine(scene: Scene, *, connect: bool) -> Iterator[Finding]:
    by_place: dict[tuple[str, str], list[Demand]] = {}
    for demand in (*of_django(scene), *of_pools(scene, gc.get_objects())):
        by_place.setdefault((demand.kind, demand.address), []).append(demand)
    for demands in by_place.values():
        yield from _judge(scene, demands, connect=connect)


def _judge(scene: Scene, demands: list[Demand], *, connect: bool) -> Iterator[Finding]:
    kind, address = demands[0].kind, demands[0].address
    limit, how = LIMITS[kind], "by default"
    if connect:
        try:
            limit, how = _limit_of(demands[0]), "as configured"
        except Refused as error:
            yield Finding(
                "databases", Severity.NOTE, f"Could not ask {NAMES[kind]} at {address}: {error}", "See --connect."
            )
    wanted = scene.config.workers * sum(demand.most for demand in demands)
    whats = " and ".join(demand.what for demand in demands)
    if wanted > limit:
        yield Finding(
            "databases",
            Severity.ERROR if how == "as configured" else Severity.WARNING,
            f"{scene.concurrency} may open {wanted} connections to {NAMES[kind]} at {address} ({whats}); it allows "
            f"{limit} {how}. More connections fail.",
            _cure(scene, limit),
        )
    for demand in demands:
        if demand.bound:
            yield Finding(
                "databases",
                Severity.NOTE,
                f"A worker runs {scene.at_once} requests at once, and {demand.what} has {demand.bound} connections: "
                "other requests wait for one, and fail at the timeout of the pool.",
                "Nothing to do if most requests use a connection briefly or not at all. Otherwise use a larger pool or "
                "fewer worker_connections.",
            )


def _cure(scene: Scene, limit: int) -> str:
    each = max(limit // max(scene.config.workers, 1), 1)
    return (
        f"Allow at most {each} connections in each of {scene.config.workers} workers: use a pool of that size, fewer "
        "worker_connections or threads, or fewer workers; or PgBouncer in front of the database, or a higher "
        "max_connections."
    )


def _limit_of(demand: Demand) -> int:
    if demand.kind == "mysql":
        return int(demand.ask(("SELECT @@max_connections",))[0])
    most, reserved = demand.ask(("SHOW max_connections", "SHOW superuser_reserved_connections"))
    return int(most) - int(reserved)


def of_django(scene: Scene) -> Iterator[Demand]:
    conf: Any = sys.modules.get("django.conf")
    if conf is None or not conf.settings.configured:
        return
    from django.db import connections

    for alias in connections:
        given = connections[alias].settings_dict
        kind = _kind(str(given.get("ENGINE", "")).rpartition(".")[2])
        if kind not in LIMITS:
            continue
        pool = given.get("OPTIONS", {}).get("pool")
        size = int(pool.get("max_size") or pool.get("min_size", 4)) if isinstance(pool, dict) else 4
        most = min(size, scene.at_once) if pool else scene.at_once
        yield Demand(
            kind,
            _address(kind, given.get("HOST"), given.get("PORT")),
            most,
            f"DATABASES[{alias!r}]" + (f" with a pool of {size}" if pool else ", one connection per request"),
            _asking(partial(_cursor_of, connections[alias])),
            size if pool and size < scene.at_once else 0,
        )


def _cursor_of(connection: Any) -> Any:
    return connection.cursor()


def of_pools(scene: Scene, objects: Iterable[object]) -> Iterator[Demand]:
    """Engines of SQLAlchemy and pools of psycopg_pool; types are looked at only, so that lazy objects stay asleep."""
    engines = getattr(sys.modules.get("sqlalchemy.engine.base"), "Engine", None)
    pools = getattr(sys.modules.get("psycopg_pool.base"), "BasePool", None)
    for each in objects:
        if engines is not None and issubclass(type(each), engines):
            yield from _of_engine(scene, each)
        elif pools is not None and issubclass(type(each), pools):
            yield _of_pool(scene, each)


def _of_engine(scene: Scene, engine: Any) -> Iterator[Demand]:
    kind = _kind(engine.dialect.name)
    if kind not in LIMITS:
        return
    pool = engine.pool
    size = getattr(pool, "size", None)
    if size is None:
        most, what, bound = scene.at_once, f"SQLAlchemy's {type(pool).__name__}, one connection per request", 0
    else:
        overflow = pool._max_overflow
        most = scene.at_once if overflow < 0 else size() + overflow
        what = f"SQLAlchemy's pool of {size()} + {'any number' if overflow < 0 else overflow}"
        bound = most if most < scene.at_once else 0
    url = engine.url
    yield Demand(
        kind,
        _address(kind, url.host or url.query.get("host"), url.port),
        min(most, scene.at_once),
        what,
        _asking(lambda: engine.raw_connection().cursor()),
        bound,
    )


def _of_pool(scene: Scene, pool: Any) -> Demand:
    def cursor() -> Any:
        import psycopg

        return psycopg.connect(pool.conninfo, **(pool.kwargs or {})).cursor()

    parts: dict[str, Any] = {}
    conninfo: Any = sys.modules.get("psycopg.conninfo")
    if conninfo is not None and isinstance(pool.conninfo, str):
        parts = {**conninfo.conninfo_to_dict(pool.conninfo), **(pool.kwargs or {})}
    most = pool.max_size
    return Demand(
        "postgresql",
        _address("postgresql", parts.get("host"), parts.get("port")),
        min(most, scene.at_once),
        f"the {type(pool).__name__} of {most}",
        _asking(cursor),
        most if most < scene.at_once else 0,
    )


def _asking(cursor_of: Callable[[], Any]) -> Callable[[tuple[str, ...]], list[Any]]:
    def ask(queries: tuple[str, ...]) -> list[Any]:
        found = []
        try:
            cursor = cursor_of()
            try:
                for query in queries:
                    cursor.execute(query)
                    found.append(cursor.fetchone()[0])
            finally:
                cursor.connection.close()
        except Exception as error:  # any of any driver's
            raise Refused(f"{type(error).__name__}: {str(error).strip()}") from None
        return found

    return ask


def _kind(name: str) -> str:
    return LONG_NAMES.get(name, name)


def _address(kind: str, host: object, port: object) -> str:
    if str(host or "").startswith("/"):
        return str(host)
    return f"{host or 'localhost'}:{port or {'postgresql': 5432, 'mysql': 3306}[kind]}"
