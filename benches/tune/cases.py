"""Applications, limits, and the configurations that `tricorn tune` is compared with: one record each."""

from __future__ import annotations

from tricorn.record import Record

WSGI, ASGI = "benches.tune.wsgi:app", "benches.tune.asgi:app"
MEMORY = 250 << 20
"""Bytes that each application may use: without a limit, requests that block would ask for a worker each."""


class Case(Record):
    name: str
    question: str
    application: str
    path: str
    best: str
    """The highest rate in closed form."""
    grid: tuple[str, ...]
    """Configurations to measure beside the finalists of `tricorn tune`."""
    database: int | None = None
    """Connections of PostgreSQL that the server may have. None: the application needs no database."""
    options: tuple[str, ...] = ()
    """Further words for `tricorn tune`: the configuration in use, classes."""

    @property
    def words(self) -> tuple[str, ...]:
        """Arguments of `tricorn tune`. Short rounds are enough for rates that differ by 10 %."""
        database = ("--db-connections", str(self.database)) if self.database is not None else ()
        limits = ("--memory", f"{MEMORY >> 20}M", *database)
        return (self.application, *self.options, "--path", self.path, *limits, "--seconds", "0.8", "--rounds", "1")


SYNC = ("sync -w 4", "sync -w 16")
THREADS = ("gthread -w 1 --threads 16", "gthread -w 1 --threads 64", "gthread -w 2 --threads 64")
MANY_THREADS = ("gthread -w 4 --threads 64", "gthread -w 1 --threads 128", "gthread -w 4 --threads 128")
GREEN = ("gevent -w 1", "gevent -w 2", "gevent -w 4")

CASES = (
    Case(
        "wait",
        "waits 50 ms, which yields under gevent",
        WSGI,
        "/wait",
        "1 / CPU",
        (*SYNC, *MANY_THREADS, *GREEN),
    ),
    Case(
        "block",
        "waits 50 ms in C without the GIL, which blocks the hub",
        WSGI,
        "/block",
        "threads / 50 ms, up to 1 / CPU",
        ("sync -w 16", *MANY_THREADS, "gthread -w 8 --threads 128", "gevent -w 1", "gevent -w 8"),
    ),
    Case(
        "hold",
        "waits 20 ms in C with the GIL held",
        WSGI,
        "/hold",
        "workers / 20 ms",
        (
            "sync -w 4",
            "sync -w 8",
            "sync -w 16",
            "sync -w 20",
            "gthread -w 8 --threads 4",
            "gevent -w 8",
        ),
    ),
    Case(
        "compute",
        "computes 10 ms",
        WSGI,
        "/compute",
        "1 / CPU",
        ("sync -w 1", "sync -w 2", "sync -w 3", "sync -w 8", "gthread -w 1 --threads 4", *THREADS[:1], *GREEN[:2]),
    ),
    Case(
        "mixed",
        "waits for 90 %, computes for 10 %",
        WSGI,
        "/mixed",
        "1 / CPU",
        (
            "sync -w 8",
            "sync -w 16",
            "gthread -w 1 --threads 8",
            *THREADS,
            *GREEN[:2],
        ),
        options=("sync -w 3",),
    ),
    Case(
        "memory",
        "waits 50 ms in a worker of 60 MiB",
        WSGI,
        "/memory",
        "1 / CPU",
        ("sync -w 2", "sync -w 4", *MANY_THREADS, *GREEN),
    ),
    Case(
        "pool",
        "waits 50 ms for PostgreSQL, over a pool of five connections",
        WSGI,
        "/pool",
        "20 connections / 50 ms",
        (
            *("sync -w 4", "gthread -w 1 --threads 8", "gthread -w 2 --threads 8", "gthread -w 4 --threads 5"),
            *("gthread -w 4 --threads 8", "gthread -w 4 --threads 16", "gevent -w 4"),
        ),
        database=20,
    ),
    Case(
        "one-blocking-call",
        "ASGI: awaits 30 ms, then blocks the loop for 20 ms",
        ASGI,
        "/",
        "workers / 20 ms",
        ("asgi -w 2", "asgi -w 4", "asgi -w 8", "asgi -w 10", "asgi -w 12", "asgi -w 16"),
    ),
)

WITHOUT_COMPARISON = (
    Case(
        "sync-second",
        "N sync workers, N requests of a second",
        WSGI,
        "/second",
        "",
        (),
        options=("sync -w 8", "--classes", "sync"),
    ),
    Case("gevent-second", "gevent and its connection limit", WSGI, "/second", "", (), options=("--classes", "gevent")),
)
"""Runs for docs/guides/how-many-workers.md only."""
