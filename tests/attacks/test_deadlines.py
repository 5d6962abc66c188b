"""Clients that would talk the server out of a deadline.

A test never asks the server for anything while it waits: that would wake the worker, which would see the deadline too.
"""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.conftest import Pool
from tests.harness import Server, Wire, each, proc, until
from tests.harness.classes import EVENT_LOOPS, EVERY, SERVERS_OF_CLASSES
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("slow clients hold its threads")

# The kernel's buffers grow while they fill, which counts as progress; and the machine that tests may be busy.
SLACK = 6.0
FAR = 60


def until_let_go(wire: Wire, within: float) -> None:
    """The server has closed its end: of a connection whose client reads nothing and says nothing."""
    until(wire.is_let_go, "the client is given up", within=within, every=0.05)


def until_stuck(wire: Wire) -> None:
    """The kernel's buffers are full: the server waits for room."""
    sizes: list[int] = []

    def is_stuck() -> bool:
        sizes.append(wire.backlog())
        return len(sizes) > 4 and sizes[-1] > 0 and len(set(sizes[-4:])) == 1

    until(is_stuck, "the response fills the buffers", every=0.05)


@pytest.mark.parametrize("rest", [b"56789", b"5"], ids=["the_rest", "one_byte"])
@pytest.mark.parametrize("worker_class", each(*EVENT_LOOPS, *SERVERS_OF_CLASSES))
def test_a_piece_of_the_body_does_not_stop_the_clock_of_the_response(
    pool: Pool, worker_class: str, rest: bytes
) -> None:
    """Two waits of one request have two deadlines: neither ends the other's."""
    server = pool.get(
        worker_class=worker_class,
        body_timeout=FAR,
        body_min_rate=1,
        header_timeout=FAR,
        keep_alive=FAR,
        write_timeout=2,
    )
    with server.connect(receive_buffer=4096) as wire:
        wire.send(request("POST", "/duplex", [("Content-Length", "10")]), b"01234")
        until_stuck(wire)
        wire.send(rest)
        until_let_go(wire, 2 * 2 + SLACK)


@pytest.mark.parametrize("target", ["/blob?size=8000000", "/stream?count=500&size=65536"], ids=["whole", "streamed"])
@pytest.mark.parametrize("worker_class", each(*EVERY, *SERVERS_OF_CLASSES))
def test_a_response_that_is_not_taken_is_given_up_in_an_idle_worker(pool: Pool, worker_class: str, target: str) -> None:
    """The deadline is set while the worker sleeps for longer: no other client comes by to wake it."""
    server = pool.get(worker_class=worker_class, header_timeout=FAR, keep_alive=FAR, write_timeout=1)
    with server.connect(receive_buffer=4096) as wire:
        wire.send(request("GET", target))
        until_stuck(wire)
        until_let_go(wire, 2 * 1 + SLACK)


@pytest.mark.parametrize("worker_class", each(*EVERY, *SERVERS_OF_CLASSES))
def test_an_idle_connection_is_closed_in_a_worker_that_sleeps(pool: Pool, worker_class: str) -> None:
    """Its deadline is set after a call that was longer than the last one's, and no event comes with it."""
    server = pool.get(worker_class=worker_class, header_timeout=FAR, keep_alive=1, write_timeout=FAR)
    with server.connect() as wire:
        assert wire.get("/hello").status == 200
        assert wire.get("/sleep?s=2").status == 200
        until_let_go(wire, 1 + SLACK)


FRAMINGS = {
    "length": [("Content-Length", "1000000")],
    "chunked": [("Transfer-Encoding", "chunked")],
}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("worker_class", each(*EVERY, *SERVERS_OF_CLASSES))
def test_a_body_that_began_fast_may_not_stop(pool: Pool, worker_class: str, framing: str) -> None:
    """At the minimum rate alone 200,000 bytes would pay for a quarter of an hour of silence."""
    server = pool.get(worker_class=worker_class, header_timeout=FAR, keep_alive=FAR, body_timeout=1, body_min_rate=240)
    with server.connect(timeout=1 + SLACK) as wire:
        size = b"f4240\r\n" if framing == "chunked" else b""
        wire.send(request("POST", "/body", FRAMINGS[framing]), size, b"b" * 200_000)
        assert wire.reply().status == 408
        wire.closed()


@pytest.mark.parametrize("worker_class", each(*EVERY, *SERVERS_OF_CLASSES))
def test_trailers_that_drip_are_no_progress(pool: Pool, worker_class: str) -> None:
    server = pool.get(worker_class=worker_class, header_timeout=FAR, keep_alive=FAR, body_timeout=1, body_min_rate=240)
    with server.connect() as wire:
        wire.send(request("POST", "/body", FRAMINGS["chunked"]), b"30d40\r\n", b"b" * 200_000, b"\r\n0\r\nX-Sum: ")

        def given_up() -> bool:
            try:
                wire.send(b"x")
            except ConnectionError:
                return True
            return wire.is_let_go()

        until(given_up, "a body that does not end is given up", within=1 + SLACK, every=0.1)
        assert wire.ended().startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("worker_class", each(*EVERY, *SERVERS_OF_CLASSES))
def test_a_byte_of_a_trailer_at_the_deadline_does_not_switch_it_off(worker_class: str) -> None:
    """The worker has no processor while the time for the body ends, and finds the end and the byte together."""
    limits = {"header_timeout": FAR, "keep_alive": FAR, "body_timeout": 1, "body_min_rate": 240}
    with Server(worker_class=worker_class, no_request_buffering=True, **limits) as server, server.connect() as wire:
        wire.send(request("POST", "/body", FRAMINGS["chunked"]), b"30d40\r\n", b"b" * 200_000, b"\r\n0\r\nX-Sum: ")
        until(wire.is_all_read, "the body is read", within=SLACK)
        worker = server.worker_pid()
        os.kill(worker, signal.SIGSTOP)
        until(lambda: proc.is_stopped(worker), "it is stopped")
        ends = time.monotonic() + 1.2
        until(lambda: time.monotonic() > ends, "the time for the body is over")
        wire.send(b"x")
        os.kill(worker, signal.SIGCONT)
        until_let_go(wire, SLACK)
