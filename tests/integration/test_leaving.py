"""A server that leaves as a whole: what its clients see from the announcement to the end."""

from __future__ import annotations

import signal
import socket
import threading
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from tricorn.control.client import Control

from tests.harness import ALL_CLASSES, Server, Site, until
from tests.harness.frames import CLOSE, Frames
from tests.harness.wire import Wire


@ALL_CLASSES
def test_from_the_announcement_on_each_answer_closes_its_connection(worker_class: str) -> None:
    """Pools of load balancers that never ask for readiness move as well. It ends when none of them comes any more."""
    with Server(
        "gallery:application", worker_class=worker_class, keep_alive=60, drain_delay=3600, drain_quiet=1
    ) as server:
        with server.connect() as kept, server.connect() as idle:
            for wire in (kept, idle):
                assert not wire.get("/hello").closes
            server.signal(signal.SIGTERM)
            server.log.wait("Draining for 3600 seconds")
            reply = kept.get("/hello")
            assert (reply.status, reply.closes) == (200, True)
            assert kept.ended() == b""
            reply = server.get("/hello")
            assert (reply.status, reply.closes) == (200, True), "newcomers are served, once each"
            server.log.wait(r"No requests for 1 seconds \(drain_quiet\)")
            assert idle.ended() == b""
        assert server.wait_exit() == 0


def test_silence_is_no_reason_to_leave_early_where_it_is_switched_off() -> None:
    with Server(drain_delay=2, drain_quiet=0) as server:
        assert server.get("/hello").status == 200
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        assert time.monotonic() - began >= 1.9
        assert not server.log.matching("drain_quiet")


def test_an_operator_who_denies_readiness_moves_pools_as_well(tmp_path: Path) -> None:
    path = tmp_path / "ctl"
    config = f"control_socket = {str(path)!r}\nkeepalive = 60\n"
    with Site(config) as server, Control.connect(path, timeout=60) as control:
        with server.connect() as kept:
            assert not kept.get("/hello").closes
            control.ask("ready", on=False)
            assert kept.get("/hello").closes
            assert kept.ended() == b""
        control.ask("ready", on=True)
        with server.connect() as kept:
            assert not kept.get("/hello").closes
            assert not kept.get("/hello").closes


def test_who_comes_too_late_is_refused_and_not_kept_waiting() -> None:
    """A packet that is dropped is sent again after a second; while it drains the server still has its listeners."""
    with Server(workers=2) as server:
        with server.connect() as wire:
            assert wire.get("/hello").status == 200, "a worker that is told to go while it boots serves no client"
        refused = threading.Event()
        unanswered: list[object] = []

        def knock() -> None:
            while not refused.is_set():
                began = time.monotonic()
                try:
                    with Wire(server.address) as wire:
                        assert wire.get("/hello").status == 200
                except ConnectionRefusedError:
                    refused.set()
                except (AssertionError, OSError) as error:
                    # One that says nothing for so long after its handshake is not waited for (`config::LAST_CALL`).
                    is_late = time.monotonic() - began >= LAST_CALL
                    if not (is_late and isinstance(error, ConnectionResetError)):
                        unanswered.append(error)
                if time.monotonic() - began > SYN_AGAIN:
                    unanswered.append(time.monotonic() - began)

        knocking = [threading.Thread(target=knock) for _ in range(8)]
        for thread in knocking:
            thread.start()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        for thread in knocking:
            thread.join()
        assert unanswered == []


def test_a_unix_socket_has_no_name_any_more() -> None:
    with Server(transport="unix") as server:
        assert server.get("/hello").status == 200
        server.signal(signal.SIGTERM)

        def is_gone() -> bool:
            with socket.socket(socket.AF_UNIX) as client:
                return client.connect_ex(str(server.address)) != 0

        until(is_gone, "its name is gone")
        assert server.wait_exit() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 1001), (signal.SIGHUP, 1012)])
def test_websockets_are_told_one_after_another_the_oldest_first(number: signal.Signals, code: int) -> None:
    count = 120
    with Server("sockets:application", worker_class="asgi", stream_drain=3) as server, ExitStack() as stack:
        sockets = [stack.enter_context(Frames(server.address, f"/echo?name={index}")) for index in range(count)]
        for client in sockets:
            client.echoes()
        server.signal(number)
        told = []
        for client in sockets:  # the order in which they are waited for
            got = client.frame()
            assert (got.first, got.code) == (CLOSE, code)
            told.append(time.monotonic())
            client.put(CLOSE, got.payload)
            client.closed()
        assert told[-1] - told[0] > 0.9, "evenly would be 1.2 s: 100 a second"
        assert sum(later - sooner > 0.01 for sooner, later in pairwise(told)) > 15, "not in two or three bursts either"
        if number == signal.SIGTERM:
            assert server.wait_exit() == 0


def test_websockets_that_wait_for_their_turn_go_on() -> None:
    with Server("sockets:application", worker_class="asgi", stream_drain=3) as server, ExitStack() as stack:
        sockets = [stack.enter_context(Frames(server.address, f"/echo?name={number}")) for number in range(300)]
        for each in sockets:
            each.echoes()
        server.signal(signal.SIGTERM)
        assert sockets[0].frame().first == CLOSE
        sockets[-1].echoes("while it waits")
        assert sockets[-1].frame().first == CLOSE


def test_a_quick_stop_waits_for_no_turn() -> None:
    patience = {"stream_drain": 3600, "graceful_timeout": 3600}
    with Server("sockets:application", worker_class="asgi", **patience) as server, ExitStack() as stack:
        first, second = (stack.enter_context(Frames(server.address, f"/echo?name={name}")) for name in "ab")
        first.echoes()
        second.echoes()
        server.signal(signal.SIGTERM)
        assert first.frame().first == CLOSE
        server.signal(signal.SIGINT)
        assert server.wait_exit() == 0


LAST_CALL = 0.1
"""Seconds in which a worker that leaves takes connections that were there."""
SYN_AGAIN = 0.95
"""Seconds after which the kernel sends the packet that opens a connection again: TCP_TIMEOUT_INIT, a second."""


STREAM = """\
import asyncio, os

async def application(scope, receive, send):
    if scope["type"] != "lifespan":
        os.write(2, f"{scope['type']} {scope['path']}\\n".encode())  # whole, where the server writes, too
        await asyncio.sleep(3600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_requests_that_the_server_cancels_are_named_in_one_line(number: signal.Signals) -> None:
    """Their CancelledError is no error of the application."""
    config = "worker_class = 'asgi'\ngraceful_timeout = 0.5\n"
    upgrade = b"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    upgrade += b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    with Site(config, app="stream:application", files={"stream.py": STREAM}) as server, ExitStack() as stack:
        for path in ("/one", "/two"):
            wire = stack.enter_context(server.connect())
            wire.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            server.log.wait(f"http {path}")
        stack.enter_context(server.connect()).send(upgrade)
        server.log.wait("websocket /socket")
        server.signal(number)
        server.wait_exit()
        (said,) = server.log.matching("Worker shutting down: cancelled unfinished requests: (.*)")
        assert {"GET /one", "GET /two", "GET /socket"} == set(said[1].split(", "))
        assert "Traceback" not in server.log.text
        assert "Error handling request" not in server.log.text
