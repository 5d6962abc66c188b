"""Request bodies on their way into a worker: what they may hold up, and what they may take."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness import APPS, REFERENCE, THREAD_CLASSES, Server, Site, command, proc
from tests.harness.core import serving
from tests.harness.deadline import until
from tests.harness.needs import needs
from tests.harness.wire import request

DISK_BYTES = 52
MIB = 1 << 20

pytestmark = pytest.mark.skipif(REFERENCE, reason="of our core")


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Length", str(len(str(len(body)))))])
    return [str(len(body)).encode()]


def test_a_disk_that_hangs_stops_neither_python_nor_other_requests(tmp_path: Path) -> None:
    """A write to it neither holds the GIL, on which this very test waits, nor keeps the core from its other clients."""
    fifo = tmp_path / "stall"
    os.mkfifo(fifo)
    with (
        serving(application, upload_dir=str(tmp_path), fault_point="stall_disk", body_buffer_size=1000) as core,
        core.wire() as uploading,
        core.wire() as other,
    ):
        uploading.send(request("POST", "/", body=b"x" * 100_000))
        until(lambda: core.word(DISK_BYTES) > 0, "bytes are on their way to the disk")
        for _ in range(3):
            assert other.get("/").body == b"0"
        mended = os.open(fifo, os.O_RDWR)
        try:
            assert uploading.reply().body == b"100000"
        finally:
            os.close(mended)
        until(lambda: core.word(DISK_BYTES) == 0, "nothing is counted any more")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_body_that_comes_faster_than_it_is_read_leaves_the_loop_to_others(loop: str) -> None:
    if loop == "uvloop":
        needs("uvloop")
    with Server("greedy:application", worker_class="asgi", asgi_loop=loop, asgi_lifespan="off") as server:
        pieces, longest = (int(word) for word in server.post("/", b"x" * (8 * MIB)).text.split())
    assert pieces >= 20
    assert longest <= 4, f"{longest} of {pieces} pieces came one after another"


def test_a_directory_for_uploads_in_memory_is_told_at_the_start() -> None:
    """/dev/shm is a tmpfs (shm_overview(7))."""
    config = "worker_class = '{}'\ntmp_upload_dir = '/dev/shm'\nbody_disk_total = 1000\n"
    with Site(config.format("gthread")) as server:
        server.log.wait(r"\[WARNING\] .*go to /dev/shm, which is in memory \(tmpfs\).*body_disk_total = 1000 bytes")
    with Site(config.format("asgi"), app="asgi.gallery:application") as server:
        assert not server.log.matching("which is in memory"), "no body goes to disk there"


def test_without_a_directory_bodies_are_kept_in_memory_as_far_as_they_may(tmp_path: Path) -> None:
    """As in a container whose root is read-only, and that has no writable /dev/shm either."""
    (tmp_path / "sitecustomize.py").write_text(
        "import tricorn.workers.core_options as core_options\ncore_options.SHARED_MEMORY = '/nonexistent'\n"
    )
    config = "worker_class = 'gthread'\nbody_buffer_size = 1000\nbody_buffer_total = 3000000\n"
    environ = {"TMPDIR": "/nonexistent", "PYTHONPATH": str(tmp_path)}
    with Site(config, env=environ) as server:
        assert server.post("/body", b"x" * 1_000_000).status == 200
        assert server.post("/body", b"x" * 4_000_000).status == 507
        server.log.wait(r"\[WARNING\] Cannot create temporary files for request bodies in .*/nonexistent\.")
    checked = subprocess.run(
        [*command(), "--check-config", "-k", "gthread", "gallery:application"],
        cwd=APPS,
        env=os.environ | environ,
        capture_output=True,
    )
    assert b"Cannot create temporary files" in checked.stderr


@contextmanager
def short_of_memory(pid: int, spare: int) -> Iterator[None]:
    """The process gets no more than so many bytes of address space while the block runs."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    before = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (pages * resource.getpagesize() + spare, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_AS, before)


@THREAD_CLASSES
def test_a_body_for_which_there_is_no_memory_costs_no_worker(worker_class: str) -> None:
    """It goes to disk, or is refused with 503; other requests, and the worker, go on."""
    big = 48 * MIB
    options = {"body_buffer_size": big, "body_buffer_total": 4 * big, "keep_alive": 60}
    with Server(worker_class=worker_class, **options) as server, server.connect() as wire, server.connect() as other:
        worker = server.worker_pid()
        assert wire.get("/pid").text == other.get("/pid").text == str(worker)
        threads = {"sync": 3, "gthread": 7}[worker_class]
        until(lambda: proc.threads(worker) == threads, "all its threads are there, monitor and sampler, too")
        with short_of_memory(worker, 8 * MIB):
            wire.send(b"POST /hello HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % big)
            sending = threading.Thread(target=_send, args=(wire, b"x" * big), daemon=True)
            sending.start()
            assert wire.reply().status in (200, 503)
            sending.join(10)
            assert other.get("/pid").text == str(worker)
        assert server.post("/hello", b"x" * big).status == 200
        assert server.worker_pids() == [worker]
        assert not server.log.matching("Error|Exception|panicked|SIGABRT")


def _send(wire: Any, body: bytes) -> None:
    try:
        wire.send(body)
    except OSError:
        return  # refused before it was all sent
