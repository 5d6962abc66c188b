"""Clients that hold on: a deadline ends each, and no other client waits for them."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress

import pytest

from tests.attacks.conftest import BODY_SECONDS, HEADER_SECONDS, WRITE_SECONDS
from tests.conftest import Pool
from tests.harness import KINDS, Crowd, Server, each, proc, until
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("slow clients hold its threads")

MEGABYTE = 1 << 20
HEAD = b"GET /hello HTTP/1.1\r\nHost: t\r\nX-Slow: " + b"y" * 1000
POST = b"POST /body HTTP/1.1\r\nHost: t\r\nContent-Type: a/b\r\nContent-Length: 1000\r\n\r\n"
CHUNKED = b"POST /body HTTP/1.1\r\nHost: t\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n"
# Deadlines are kept by a wheel with steps, and the machine that tests may be busy.
SLACK = 4.0


def serves_promptly(server: Server, within: float = 1.0) -> None:
    with server.connect(timeout=within) as wire:
        assert wire.get("/hello").status == 200


@pytest.mark.parametrize("count", [50])
def test_slowloris_heads(server: Server, count: int) -> None:
    with Crowd(server.address, count, HEAD, first=b"G", every=0.25) as crowd:
        serves_promptly(server)
        for lifetime in crowd.wait_all_ended(HEADER_SECONDS + SLACK):
            assert lifetime >= HEADER_SECONDS * 0.9
        for client in crowd.clients:
            assert bytes(client.heard).startswith(b"HTTP/1.1 408 "), bytes(client.heard)
        serves_promptly(server)


@pytest.mark.parametrize("first", [POST, CHUNKED], ids=["length", "chunked"])
def test_slow_bodies(server: Server, first: bytes) -> None:
    before = server.calls()
    with Crowd(server.address, 50, b"b" * 1000, first=first, every=0.25) as crowd:
        serves_promptly(server)
        crowd.wait_all_ended(BODY_SECONDS + SLACK)
        for client in crowd.clients:
            assert bytes(client.heard).startswith(b"HTTP/1.1 408 "), bytes(client.heard)
    assert server.calls() == before + 1, "a request whose body never came must not reach the application"


def test_a_slow_head_behind_a_good_request(server: Server) -> None:
    """The deadline of a head counts for every request of a connection."""
    with Crowd(server.address, 5, HEAD, first=request("GET", "/hello") + b"G", every=0.25) as crowd:
        crowd.wait_all_ended(HEADER_SECONDS + SLACK)
        for client in crowd.clients:
            assert client.heard.count(b"HTTP/1.1 200 ") == 1


def test_connections_that_never_say_anything(server: Server) -> None:
    with Crowd(server.address, 50) as crowd:
        serves_promptly(server)
        crowd.wait_all_ended(HEADER_SECONDS + SLACK)


@pytest.mark.parametrize("worker_class", each("gthread", "asgi"))
def test_long_unfinished_heads_have_a_common_bound(pool: Pool, worker_class: str) -> None:
    """Each is within the limits of a head. The shorter one that began before them is not given up for theirs."""
    server = pool.get(worker_class=worker_class, header_timeout=60, head_buffer_total="8M", keep_alive=30)
    serves_promptly(server)
    worker = server.worker_pid()
    before = proc.private_bytes(worker)
    field = b"X-Long: " + b"y" * 8000 + b"\r\n"
    with ExitStack() as stack:
        modest = stack.enter_context(server.connect())
        modest.send(b"GET /hello HTTP/1.1\r\nHost: t\r\n")
        most = 0
        for _ in range(100):
            wire = stack.enter_context(server.connect())
            with suppress(OSError):  # refused before all of it is sent
                wire.send(b"GET /hello HTTP/1.1\r\nHost: t\r\n" + field * 90)
            most = max(most, proc.private_bytes(worker) - before)
        assert most < 8 * MEGABYTE + 16 * MEGABYTE, f"grew by {most / MEGABYTE:.0f} MB"
        server.log.wait("Incomplete request headers used more than 8388608 bytes")
        serves_promptly(server)
        assert modest.send(b"\r\n").reply().status == 200


def test_a_body_that_is_slow_but_fast_enough(server: Server) -> None:
    with server.connect() as wire:
        wire.send(POST)
        began = time.monotonic()
        for _ in range(10):
            wire.send(b"b" * 100)
            # Not for synchronisation: this client *is* slow, 250 bytes a second where 100 are asked for.
            time.sleep(0.2)
        assert time.monotonic() - began > BODY_SECONDS
        assert wire.reply().json()["length"] == 1000


@pytest.mark.parametrize(
    "target",
    [f"/stream?count=1600&size={64 * 1024}", f"/blob?size={100 * MEGABYTE}"],
    ids=["generator", "one_bytes_object"],
)
def test_a_client_that_asks_for_a_hundred_megabytes_and_never_reads(pool: Pool, target: str) -> None:
    server = pool.get(worker_class="gthread", threads=4, keep_alive=5, write_timeout=WRITE_SECONDS)
    serves_promptly(server)
    worker = server.worker_pid()
    before = proc.private_bytes(worker)
    with server.connect(receive_buffer=4096) as wire:
        wire.send(request("GET", target))
        most = 0

        def cut_off() -> bool:
            nonlocal most
            most = max(most, proc.private_bytes(worker))
            return wire.is_let_go()

        # Nothing is asked meanwhile: a request would wake the thread that has to keep the deadline.
        until(cut_off, "the client that never reads is cut off", within=WRITE_SECONDS + SLACK, every=0.1)
    server.log.wait(rf"clients read nothing for {WRITE_SECONDS:.0f} s \(write_timeout\): 1\.")
    # The object itself has to exist once; beyond it only bounded buffers may grow.
    allowed = (100 if "blob" in target else 0) * MEGABYTE + 16 * MEGABYTE
    assert most - before < allowed, f"grew by {(most - before) / MEGABYTE:.0f} MB"
    until(lambda: proc.private_bytes(worker) < before + 16 * MEGABYTE, "the memory is given back")
    serves_promptly(server)


@KINDS
def test_many_that_never_read_an_ordinary_response(pool: Pool, worker_class: str) -> None:
    """A response that fits the bounded buffer costs its thread nothing, however many never read it."""
    server = pool.get(worker_class=worker_class, keep_alive=5, write_timeout=WRITE_SECONDS)
    wires = [server.connect(receive_buffer=4096) for _ in range(20)]
    try:
        for wire in wires:
            wire.send(request("GET", f"/blob?size={200_000}"))
        serves_promptly(server)
    finally:
        for wire in wires:
            wire.close()


def test_many_that_never_read_a_large_response(pool: Pool) -> None:
    """More of them than there are threads: each costs a bounded buffer, none a thread for longer than the deadline."""
    server = pool.get(worker_class="gthread", threads=4, keep_alive=5, write_timeout=WRITE_SECONDS)
    serves_promptly(server)
    rounds = 5
    wires = [server.connect(receive_buffer=4096) for _ in range(rounds * 4)]
    try:
        for wire in wires:
            wire.send(request("GET", f"/blob?size={4 * MEGABYTE}"))
        until(
            lambda: all(wire.is_let_go() for wire in wires),
            "all are cut off",
            within=rounds * (WRITE_SECONDS + 1) + SLACK,
            every=0.1,
        )
        serves_promptly(server)
    finally:
        for wire in wires:
            wire.close()


def test_a_slow_reader_that_reads_is_served(pool: Pool) -> None:
    """Progress counts, not the total: a response may take longer than the deadline."""
    server = pool.get(worker_class="gthread", threads=4, keep_alive=5, write_timeout=WRITE_SECONDS)
    size = 6 * MEGABYTE
    with server.connect(receive_buffer=65536) as wire:
        wire.send(request("GET", f"/blob?size={size}"))
        got, began = 0, time.monotonic()
        head = b""
        while b"\r\n\r\n" not in head:
            head += wire.sock.recv(1)
        while got < size:
            piece = wire.sock.recv(65536)
            assert piece, f"cut off after {got} bytes and {time.monotonic() - began:.1f} s"
            got += len(piece)
            time.sleep(0.01)  # this client is slow
    assert got == size


@pytest.mark.parametrize("worker_class", each("gthread", "asgi"))
def test_two_thousand_idle_connections(pool: Pool, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, keep_alive=20, header_timeout=20)
    worker = server.worker_pid()
    with Crowd(server.address, 1000) as silent, Crowd(server.address, 1000, first=request("GET", "/hello")) as idle:
        until(lambda: all(client.heard for client in idle.clients), "every idle client was answered")
        for _ in range(20):
            serves_promptly(server)
        assert len(silent.open()) + len(idle.open()) == 2000
        # The silent ones may wait in the kernel, which need not hand over who has said nothing.
        assert proc.descriptors(worker) > 1000
        used = proc.cpu_seconds(worker)
        serves_promptly(server)
        assert proc.cpu_seconds(worker) - used < 0.5
    until(lambda: proc.descriptors(worker) < 100, "the descriptors are given back")
