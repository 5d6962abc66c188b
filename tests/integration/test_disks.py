"""Disks that hang: what the other clients of a worker notice of them. Nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness import REFERENCE, Site, each, proc, until
from tests.harness.wire import request

pytestmark = pytest.mark.skipif(REFERENCE, reason="of our core")

SIZE = 3_000_000
"""More than the page cache's copies and the socket take at once."""

CONFIG = """
from tricorn.workers import core_options

original = core_options.core_options
core_options.core_options = lambda *args, **keywords: original(*args, **keywords) | {{"fault_point": "stall_disk"}}
worker_class = {worker_class!r}
threads = 4
tmp_upload_dir = {directory!r}
response_buffer_size = 100_000
response_buffer_total = 200_000
"""

WSGI = """
import os

def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/":
        start_response("200 OK", [("Content-Length", "5")])
        return [b"Hello"]
    if path == "/pieces":
        start_response("200 OK", [])
        return (b"x" * 100_000 for _ in range(300))
    file = open(path, "rb")
    start_response("200 OK", [("Content-Length", str(os.fstat(file.fileno()).st_size))])
    return environ["wsgi.file_wrapper"](file)
"""
ASGI = """
async def application(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/":
        await send({"type": "http.response.body", "body": b"Hello"})
    else:
        await send({"type": "http.response.pathsend", "path": scope["path"]})
"""
AIOHTTP = """
from aiohttp import web

async def answer(request):
    return web.Response(body=b"Hello") if request.path == "/" else web.FileResponse(request.path)

application = web.Application()
application.router.add_get("/{path:.*}", answer)
"""
APPLICATIONS = {"sync": WSGI, "gthread": WSGI, "gevent": WSGI, "eventlet": WSGI, "asgi": ASGI, "aiohttp": AIOHTTP}
ALL = pytest.mark.parametrize("worker_class", each(*APPLICATIONS))


@contextmanager
def serving(worker_class: str, directory: Path) -> Iterator[Site]:
    config = CONFIG.format(worker_class=worker_class, directory=str(directory))
    if worker_class == "asgi":
        config += "asgi_pathsend = True\n"
    with Site(config, app="stored:application", files={"stored.py": APPLICATIONS[worker_class]}) as server:
        yield server


def made(path: Path) -> Path:
    path.write_bytes(os.urandom(SIZE))
    return path


@contextmanager
def mended(fifo: Path) -> Iterator[None]:
    """The disk, or file, works while the block runs: a FIFO that is opened both ways waits for no peer (fifo(7))."""
    descriptor = os.open(fifo, os.O_RDWR)
    try:
        yield
    finally:
        os.close(descriptor)


def get(server: Site, path: Path | str) -> bytes:
    with server.connect() as wire:
        return wire.get(str(path)).body


def holds(pid: int, path: Path) -> int:
    """How often a process has this file open."""
    return sum(os.path.realpath(link) == str(path) for link in Path(f"/proc/{pid}/fd").iterdir())


@ALL
def test_a_file_that_hangs_stops_no_other_download(worker_class: str, tmp_path: Path) -> None:
    hung, other = made(tmp_path / "hung"), made(tmp_path / "other")
    fifo = tmp_path / f"stall-{hung.stat().st_ino}"
    os.mkfifo(fifo)
    with serving(worker_class, tmp_path) as server:
        worker = server.worker_pid()
        with server.connect() as wire, server.connect() as second:
            for waiting in (wire, second):
                waiting.send(request("GET", str(hung)))
            for _ in range(3):
                assert get(server, other) == other.read_bytes()
                assert get(server, "/") == b"Hello"
            with mended(fifo):
                for waiting in (wire, second):
                    assert waiting.reply().body == hung.read_bytes()
        until(lambda: holds(worker, hung) + holds(worker, other) == 0, "the files are closed")
        assert server.worker_pids() == [worker]


@pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent", "eventlet"))
def test_a_response_whose_file_hangs_stops_nobody_else(worker_class: str, tmp_path: Path) -> None:
    """A slow client's bytes go to a temporary file. A greenlet that waits for that holds up no other."""
    fifo = tmp_path / "stall"
    os.mkfifo(fifo)
    with serving(worker_class, tmp_path) as server, server.connect() as wire:
        wire.send(request("GET", "/pieces"))
        if worker_class != "sync":
            for _ in range(3):
                assert get(server, "/") == b"Hello"
        with mended(fifo):
            assert get(server, "/") == b"Hello"
            assert len(wire.reply().body) == 300 * 100_000


def test_a_path_that_hangs_stops_no_event_loop(tmp_path: Path) -> None:
    """`RESOLVE_CACHED` (openat2(2)) follows no link of procfs, so that a job opens the file."""
    file = made(tmp_path / "file")
    fifo = tmp_path / f"stall-{Path('/proc').stat().st_ino}"
    os.mkfifo(fifo)
    with serving("asgi", tmp_path) as server, server.connect() as wire:
        wire.send(request("GET", f"/proc/self/root{file}"))
        for _ in range(3):
            assert get(server, "/") == b"Hello"
            assert get(server, file) == file.read_bytes()
        with mended(fifo):
            assert wire.reply().body == file.read_bytes()


def test_a_client_that_leaves_while_its_path_hangs(tmp_path: Path) -> None:
    file = made(tmp_path / "file")
    fifo = tmp_path / f"stall-{Path('/proc').stat().st_ino}"
    os.mkfifo(fifo)
    with serving("asgi", tmp_path) as server:
        worker = server.worker_pid()
        with server.connect() as wire:
            wire.send(request("GET", f"/proc/self/root{file}"))
            assert get(server, "/") == b"Hello"
        with mended(fifo):
            until(lambda: proc.threads(worker) > 0 and holds(worker, file) == 0, "the file is closed")
        assert get(server, file) == file.read_bytes()
        assert server.worker_pids() == [worker]
