"""Requests wait for room in a pool while nothing blocks: the log names the pool, its size, how many wait and where."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tricorn.control.client import Control

from tests.harness import Site, until
from tests.harness.classes import each
from tests.harness.postgres import Postgres, postgres  # noqa: F401  (a fixture)

SOURCE = Path(__file__).with_name("pooled.py")
CLIENTS = 5
CONFIG = """\
worker_class = {name!r}
threads = 8
asgi_loop = {loop!r}
doctor_threshold = 0.02
"""
NAMES = {"gthread": "wsgi", "gevent": "wsgi", "eventlet": "wsgi", "asgi": "asgi", "tornado": "tornado()"}
NAMES["aiohttp"] = "aiohttp_application()"
THREADS = ("sqlalchemy", "psycopg", "urllib3", "httpx", "redis")
TASKS = ("async_sqlalchemy", "async_psycopg", "async_httpx", "aiohttp", "async_redis", "anyio", "executor", "asgiref")
CASES = {
    "gthread": THREADS,
    "gevent": (*THREADS, "gevent"),
    "eventlet": ("sqlalchemy", "urllib3"),
    "asgi-asyncio": TASKS,
    "asgi-uvloop": ("async_psycopg", "anyio"),
    "tornado": ("async_psycopg", "anyio"),
    "aiohttp": ("async_sqlalchemy", "anyio"),
}
WORDS = {
    "sqlalchemy": "SQLAlchemy's pool",
    "psycopg": "psycopg_pool",
    "urllib3": "urllib3's pool",
    "httpx": "httpcore's pool",
    "redis": "redis' BlockingConnectionPool",
    "gevent": "the thread pool of gevent's hub",
    "aiohttp": "the connector of aiohttp's client",
    "anyio": "anyio's thread limiter",
    "executor": "asyncio's default executor",
    "asgiref": "asgiref's single thread",
}
LINE = (
    r"\[WARNING\] Requests of worker \(pid:(\d+)\), {name}, (have been|were) waiting for a pool for ([\d.]+) s\. "
    r"(\d+) of (\d+) requests in flight are waiting for .*? from {pool}(.*)"
)


@contextmanager
def half_an_answer() -> Iterator[int]:
    """A server that answers each request with the head of a response, and keeps the body back."""
    listener = socket.create_server(("127.0.0.1", 0))
    connections: list[socket.socket] = []

    def one(connection: socket.socket) -> None:
        try:
            while connection.recv(4096):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n")
        except OSError:
            pass

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection)
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()
        for connection in connections:
            connection.close()


@pytest.mark.parametrize("name", each(*CASES))
def test_an_exhausted_pool_is_named_with_its_size_and_who_waits(
    name: str,
    postgres: Postgres,  # noqa: F811
    tmp_path: Path,
) -> None:
    worker_class, _, loop = name.partition("-")
    config = CONFIG.format(name=worker_class, loop=loop or "asyncio") + f"control_socket = {str(tmp_path / 'c')!r}\n"
    with half_an_answer() as port:
        environ = {"POOLED_PORT": str(port), "POOLED_DSN": postgres.url(tcp=True)}
        files = {"pooled.py": SOURCE.read_text()}
        app = f"pooled:{NAMES[worker_class]}"
        with Site(config, app=app, files=files, env=environ, fresh=True) as server:
            assert server.get("/").status == 204
            for case in CASES[name]:
                waits_for(server, worker_class, case)
            with Control.connect(tmp_path / "c", timeout=10) as control:
                found = control.ask("stalls")["stalls"]
    kinds = {row["pool"] for row in found}
    assert {each.removeprefix("async_") for each in CASES[name]} <= kinds, kinds
    for row in found:
        if row["verdict"] == "POOL_WAIT":
            assert row["total"]["request_seconds"] > 0.2, row
            assert row["total"]["count"] == 1, "one episode"
    assert not server.log.matching(r"SATURATED|LOCK_WAIT"), server.log.text


def waits_for(server: Site, worker_class: str, case: str) -> None:
    plain = case.removeprefix("async_")
    pattern = LINE.format(name=worker_class, pool=re.escape(WORDS[plain]))
    assert server.get("/release").status == 204
    assert server.get(f"/{case}").status == 204, "the pool is made"
    assert server.get("/close").status == 204
    before = len(server.log.matching(pattern))
    with ThreadPoolExecutor(CLIENTS) as pool:
        try:
            replies = [pool.submit(server.get, f"/{case}") for _ in range(CLIENTS)]
            until(lambda: len(server.log.matching(pattern)) > before, f"{case} is told")
        finally:
            server.get("/release")
        assert [reply.result().status for reply in replies] == [204] * CLIENTS
    found = server.log.matching(pattern)[before]
    assert int(found[1]) == server.worker_pid()
    # gevent's limit is one "approximately": it lets one task wait in its queue, which it calls running.
    waiting = (CLIENTS - 2, CLIENTS - 1) if plain == "gevent" else (CLIENTS - 1,)
    assert int(found[4]) in waiting, found[0]
    assert int(found[5]) == CLIENTS, found[0]
    said = found[6]
    assert f"pooled.py:{line_of(case)} in {case}" in said, said
    assert " POOL_WAIT. " in said, said
    assert "docs/diagnose/doctor.md#pool_wait" in said, said
    if worker_class != "gthread" and plain not in ("gevent", "executor", "asgiref"):
        assert re.search(r"which has 1 (connections|threads)", said), said
    if plain in ("executor", "asgiref", "gevent"):
        assert "which has 1 threads" in said, said
    # Its end is told, too.
    server.log.wait(pattern.replace("(have been|were)", "(were)"))


def line_of(case: str) -> int:
    """The line that waits: the first one of the function that calls a library."""
    lines = SOURCE.read_text().splitlines()
    (first,) = (number for number, line in enumerate(lines, 1) if re.match(rf"(async )?def {case}\(", line))
    waits = re.compile(
        r"closing\(|\.connection\(\)|urlopen|\.stream\(|get_connection|apply\(|\.get\(f|run_sync|sync_to_async\(|to_thread\(|connect\(\)"
    )
    return next(number for number in range(first, first + 20) if waits.search(lines[number - 1]))
