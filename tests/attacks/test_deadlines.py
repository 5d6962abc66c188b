"""Clients that would talk the server out of a deadline.

A test never asks the server for anything while it waits: that would wake the worker, which would see the deadline too.
How each class keeps the deadlines of a worker that is awake is told in `tests/conformance/policy`.
"""

from __future__ import annotations

import os
import signal

import pytest

from tests.conftest import Pool
from tests.harness import Server, each, elapse, proc, until
from tests.harness.classes import EVERY, SERVERS_OF_CLASSES
from tests.harness.slow import until_let_go, until_stuck
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("slow clients hold its threads")

# The kernel's buffers grow while they fill, which counts as progress; and the machine that tests may be busy.
SLACK = 6.0
FAR = 60


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


@pytest.mark.parametrize("worker_class", each(*EVERY, *SERVERS_OF_CLASSES))
def test_a_byte_of_a_trailer_at_the_deadline_does_not_switch_it_off(worker_class: str) -> None:
    """The worker has no processor while the time for the body ends, and finds the end and the byte together."""
    limits = {"header_timeout": FAR, "keep_alive": FAR, "body_timeout": 1, "body_min_rate": 240}
    with Server(worker_class=worker_class, no_request_buffering=True, **limits) as server, server.connect() as wire:
        head = request("POST", "/body", [("Transfer-Encoding", "chunked")])
        wire.send(head, b"30d40\r\n", b"b" * 200_000, b"\r\n0\r\nX-Sum: ")
        until(wire.is_all_read, "the body is read", within=SLACK)
        worker = server.worker_pid()
        os.kill(worker, signal.SIGSTOP)
        until(lambda: proc.is_stopped(worker), "it is stopped")
        elapse(1.2)  # the time for the body is over
        wire.send(b"x")
        os.kill(worker, signal.SIGCONT)
        until_let_go(wire, SLACK)
