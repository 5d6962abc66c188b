"""`timeout` limits the time without progress: streams, slow downloads and taken sockets may last for longer."""

from __future__ import annotations

import signal

import pytest

from tests.harness import THREAD_CLASSES, WSGI_KINDS, Server, elapse, until
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("its timeout cuts streams of sync workers, and never ends those of threads")

TIMEOUT = 2
EVERY = 0.25
"""Far below the limit, so that a busy machine makes no gap of its length."""
COUNT = 14
"""So many of them last far longer than the limit."""


def serve(worker_class: str, **more: object) -> Server:
    return Server("progress:application", worker_class=worker_class, timeout=TIMEOUT, **more)


def was_left_alone(server: Server, worker: int) -> None:
    assert server.worker_pids() == [worker]
    assert not server.log.matching("TIMEOUT"), server.log.text


@THREAD_CLASSES
@pytest.mark.parametrize("path", ["/drip", "/write", "/hints", "/empty"])
def test_a_call_that_goes_on_is_not_stuck_however_long_it_lasts(worker_class: str, path: str) -> None:
    with serve(worker_class) as server, server.connect() as wire:
        worker = server.worker_pid()
        reply = wire.get(f"{path}?count={COUNT}&every={EVERY}")
        assert reply.status == 200
        if path in ("/drip", "/write"):
            assert reply.body == b"piece\n" * COUNT
        was_left_alone(server, worker)


@THREAD_CLASSES
def test_a_client_that_reads_slowly_costs_no_worker(worker_class: str) -> None:
    """The thread waits for room: that time is the client's, and limited by `write_timeout` alone."""
    count = 256
    with (
        serve(worker_class, write_timeout=60, body_min_rate=1) as server,
        server.connect(receive_buffer=8192) as wire,
    ):
        worker = server.worker_pid()
        wire.send(request("GET", f"/flood?count={count}", [("Connection", "close")]))
        wire.sock.recv(1, 0x2)  # MSG_PEEK: it has begun
        elapse(2 * TIMEOUT)  # the client sleeps for longer than the limit
        heard = wire.ended()
        assert heard.count(b"x" * 65536) == count
        was_left_alone(server, worker)


@THREAD_CLASSES
def test_an_application_that_has_taken_the_socket_has_no_limit(worker_class: str) -> None:
    with serve(worker_class) as server, server.connect() as wire:
        worker = server.worker_pid()
        wire.send(request("GET", f"/taken?count=3&every={2 * TIMEOUT}"))
        heard = wire.ended()
        assert heard == b"frame-0\nframe-1\nframe-2\n"
        was_left_alone(server, worker)


@THREAD_CLASSES
def test_a_stream_that_stops_is_stuck(worker_class: str) -> None:
    with serve(worker_class) as server, server.connect() as wire:
        worker = server.worker_pid()
        wire.send(request("GET", "/stalls"))
        server.log.wait(rf"WORKER TIMEOUT \(pid:{worker}\)")
        server.log.wait(rf"GET /stalls has been running for {TIMEOUT}\.\d seconds without progress \(timeout\)")
        assert "stalls_in_a_stream" in server.log.text
        until(lambda: worker not in server.worker_pids(), "it is replaced")
        assert b"first" in wire.ended()


def test_the_call_after_a_taken_socket_is_watched() -> None:
    """What excused one call of the thread does not excuse the next."""
    with serve("sync") as server:
        worker = server.worker_pid()
        with server.connect() as wire:
            wire.send(request("GET", "/taken?count=1&every=0"))
            assert wire.ended() == b"frame-0\n"
        with server.connect() as wire:
            wire.send(request("GET", "/stalls"))
            server.log.wait(rf"WORKER TIMEOUT \(pid:{worker}\)")


def test_a_worker_in_the_midst_of_streams_leaves_after_them() -> None:
    with serve("gthread", graceful_timeout=20) as server, server.connect() as wire:
        wire.send(request("GET", f"/drip?count={COUNT}&every={EVERY}", [("Connection", "close")]))
        wire.sock.recv(1, 0x2)
        server.signal(signal.SIGTERM)
        assert wire.ended().count(b"piece\n") == COUNT
        assert server.wait_exit() == 0


@WSGI_KINDS
def test_a_taken_socket_gets_no_504_of_the_server(worker_class: str) -> None:
    """`request_timeout` ends the call; what its client reads is the other protocol's and nothing else."""
    with (
        Server("progress:application", worker_class=worker_class, timeout=30, request_timeout=0.5) as server,
        server.connect() as wire,
    ):
        wire.send(request("GET", "/frames?count=500&every=0.02"))
        heard = wire.ended()
        server.log.wait("GET /frames")
        assert heard == b"".join(b"frame-%d\n" % number for number in range(heard.count(b"\n"))), heard[-200:]
        assert server.get("/pid").status == 200
