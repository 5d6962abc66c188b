"""Few descriptors: clients do not take those of the application, nor the application those of health probes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.harness import KINDS, Server, Wire, proc, until
from tests.harness.server import free_port
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("there is no limit of connections but that of descriptors")

DESCRIPTORS = 128
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: t\r\nX-More: "


class Limited(Server):
    """May have so many descriptors."""

    def __init__(self, worker_class: str, **options: object) -> None:
        super().__init__("descriptors:application", worker_class=worker_class, **options)  # type: ignore[arg-type]
        self.argv = ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh", *self.argv]


@contextmanager
def half_heads(server: Server, count: int) -> Iterator[list[Wire]]:
    with ExitStack() as stack:
        yield [stack.enter_context(server.connect()).send(HALF_A_HEAD) for _ in range(count)]


@KINDS
def test_unfinished_heads_leave_the_application_its_descriptors(worker_class: str) -> None:
    with Limited(worker_class, keep_alive=60, header_timeout=60) as server, server.connect() as polite:
        worker = server.worker_pid()
        assert polite.get("/open").text == "8"
        for _ in range(2):
            with half_heads(server, 110) as wires:
                # Served in their midst, by the connection that was there before and by one that comes after them.
                assert polite.get("/open").text == "8"
                with server.connect() as late:
                    assert late.get("/open").text == "8"
                assert proc.descriptors(worker) < DESCRIPTORS - 10
                until_gone(wires, 45)
        assert not server.log.matching("Out of file descriptors")
        told = server.log.wait("connections with incomplete request headers to make room")
        assert len(told) < 10


def until_gone(wires: list[Wire], count: int) -> None:
    until(lambda: sum(map(gone, wires)) >= count, "the oldest are turned away")


def gone(wire: Wire) -> bool:
    wire.still_open(0.001)
    assert wire.unread.startswith(b"HTTP/1.1 503 ") or not wire.unread
    return bool(wire.unread)


@KINDS
def test_heads_that_use_up_all_descriptors_do_not_keep_newcomers_waiting(worker_class: str) -> None:
    """More than fit, since the application holds some: the oldest heads go long before their deadline."""
    options = {"keep_alive": 60, "header_timeout": 60, "max_connections": 1000}
    with Limited(worker_class, **options) as server, server.connect() as wire:
        assert int(wire.get("/eat").text) > 40
        with half_heads(server, 60), server.connect() as late:
            assert late.get("/").status == 200
            assert int(late.get("/back").text) > 40


class Starved:
    """A worker whose application has taken every descriptor, and what it costs meanwhile."""

    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self.admin = ("127.0.0.1", port)
        self.worker = server.worker_pid()

    def lines(self) -> int:
        return len(self.server.log.matching("Out of file descriptors"))

    def rest(self, seconds: float) -> float:
        """The part of a processor that is used while nothing is asked."""
        began, used = time.monotonic(), proc.cpu_seconds(self.worker)
        time.sleep(seconds)  # the time over which is measured
        return (proc.cpu_seconds(self.worker) - used) / (time.monotonic() - began)


@contextmanager
def starved(worker_class: str) -> Iterator[Starved]:
    port = free_port()
    options = {"keep_alive": 60, "header_timeout": 60, "admin_bind": f"127.0.0.1:{port}"}
    with Limited(worker_class, **options) as server, server.connect() as wire:
        assert wire.get("/").status == 200
        # A connection of before may end in between, and leave one.
        until(lambda: wire.get("/eat").text == wire.get("/eat").text, "nothing is left")
        assert int(wire.get("/eat").text) > 40
        yield Starved(server, port)
        with server.connect() as newcomer:
            # It takes the place of the idle connection.
            assert int(newcomer.get("/back").text) > 40
            assert newcomer.get("/open").text == "8"
        with Wire(("127.0.0.1", port)) as probe:
            assert not probe.get("/healthz").closes


@KINDS
def test_a_health_probe_is_answered_when_the_application_has_all_descriptors(worker_class: str) -> None:
    with starved(worker_class) as state:
        for _ in range(20):
            with Wire(state.admin) as probe:
                reply = probe.get("/healthz")
                assert (reply.status, reply.closes) == (200, True)
                probe.closed()
        # Many at once: one after the other.
        with ExitStack() as stack:
            probes = [stack.enter_context(Wire(state.admin)) for _ in range(10)]
            for probe in probes:
                probe.send(request("GET", "/readyz"))
            assert [probe.reply().status for probe in probes] == [200] * 10
        assert state.rest(1.0) < 0.5


@KINDS
def test_probes_that_wait_for_descriptors_cost_no_processor_and_few_lines(worker_class: str) -> None:
    """Connections that ask nothing use up what is in reserve: those behind them wait, and are answered in the end."""
    with starved(worker_class) as state, ExitStack() as stack:
        silent = [stack.enter_context(Wire(state.admin)) for _ in range(6)]
        before, began = state.lines(), time.monotonic()
        assert state.rest(1.5) < 0.5
        with Wire(state.admin) as probe:
            assert probe.get("/healthz").status == 200
        for wire in silent:
            wire.closed()
        assert state.lines() - before <= time.monotonic() - began + 2
