"""Whatever a request waits for, the others go on: its client, its own pauses, its place among those that run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.attacks.test_slow_clients import serves_promptly
from tests.harness import GREEN, GREEN_CLASSES, Crowd, Server, Site, Wire, each, until
from tests.harness.marked import calls
from tests.harness.proc import private_bytes
from tests.harness.wire import request

MEGABYTE = 1 << 20
WRITE_SECONDS = 1
TARGETS = {
    "one_object": f"/blob?size={8 * MEGABYTE}",
    "generator": f"/stream?count=128&size={64 * 1024}",
    "write": f"/writes?alone=1&raw=1&count=128&size={64 * 1024}",
    "sendfile": f"/files?kind=disk&raw=1&size={8 * MEGABYTE}",
    "file_without_descriptor": f"/files?kind=memory&raw=1&size={8 * MEGABYTE}",
}


def connect(server: Server, stack: ExitStack, count: int, **options: int) -> list[Wire]:
    return [stack.enter_context(server.connect(**options)) for _ in range(count)]


def inside(gate: Path) -> int:
    return len(list(gate.parent.glob(f"{gate.name}.in.*")))


@GREEN_CLASSES
def test_clients_that_never_read_are_cut_off_and_hold_up_nobody(worker_class: str) -> None:
    """The only worker, and its only thread: each of them waits in the middle of a response."""
    with Server(worker_class=worker_class, write_timeout=WRITE_SECONDS) as server, ExitStack() as stack:
        worker = server.worker_pid()
        before = private_bytes(worker)
        wires = connect(server, stack, 3 * len(TARGETS), receive_buffer=4096)
        for wire, target in zip(wires, [*TARGETS.values()] * 3, strict=True):
            wire.send(request("GET", target))
        most = 0

        def left() -> list[str]:
            nonlocal most
            serves_promptly(server, within=4 * WRITE_SECONDS)  # one after another they would hold it five times as long
            most = max(most, private_bytes(worker))
            gone = [wire.is_let_go() for wire in wires]
            return [name for name, is_gone in zip([*TARGETS] * 3, gone, strict=True) if not is_gone]

        until(lambda: not left(), "all are cut off", every=0.05)
        # The objects exist once, or twice while they are made; what is buffered of one for a client is bounded.
        assert most - before < 6 * 2 * 8 * MEGABYTE + len(wires) * MEGABYTE + 16 * MEGABYTE


@pytest.fixture(scope="module", params=each(*GREEN))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(worker_class=request.param, keep_alive=80) as server:
        yield server


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_clients_that_read_late_get_all_of_it(server: Server, target: str) -> None:
    with ExitStack() as stack:
        with server.connect() as wire:
            whole = wire.get(target).body
        assert len(whole) == 8 * MEGABYTE
        wires = connect(server, stack, 4, receive_buffer=65536)
        for wire in wires:
            wire.send(request("GET", target))
        for _ in range(10):
            serves_promptly(server)
        for wire in wires:
            assert wire.reply().body == whole
        assert wires[0].get("/hello").status == 200, "the connection is of use afterwards"


def test_streams_that_pause_flow_side_by_side(server: Server) -> None:
    pieces, pause, count = 5, 0.1, 40
    with ExitStack() as stack:
        wires = connect(server, stack, count)
        began = time.monotonic()
        for wire in wires:
            wire.send(request("GET", f"/stream?count={pieces}&size=3&pause={pause}"))
        for wire in wires:
            assert wire.reply().chunks == [b"aaa", b"bbb", b"ccc", b"ddd", b"eee"]
        assert time.monotonic() - began < count * (pieces - 1) * pause / 2


@GREEN_CLASSES
def test_as_many_run_at_once_as_there_are_places_and_the_others_in_their_turn(
    tmp_path: Path, worker_class: str
) -> None:
    places = 5
    ledger = tmp_path / "ledger"
    config = f"worker_class = {worker_class!r}\nworker_connections = {places}\n"
    with (
        Site(config, app="counted:application", env={"LEDGER": str(ledger)}) as server,
        ExitStack() as stack,
    ):
        gates = [tmp_path / f"gate{nr}" for nr in range(places)]
        for gate in gates:
            stack.callback(gate.touch)
        holding = connect(server, stack, places)
        for wire, gate in zip(holding, gates, strict=True):
            wire.send(request("GET", f"/?id={gate.name}&gate={gate}"))
        until(lambda: len(calls(ledger)) == places, "every place is taken")
        waiting = connect(server, stack, 8)
        for nr, wire in enumerate(waiting):
            wire.send(request("GET", f"/?id=waits{nr}&s=0.01"))
            assert wire.still_open()
            assert not wire.unread
        assert len(calls(ledger)) == places, "no other call has begun"
        gates[0].touch()
        assert holding[0].reply().status == 200
        for wire in waiting:
            assert wire.reply().status == 200
        begun = [line.split()[0] for line in ledger.read_text().splitlines()]
        assert begun[places:] == [f"waits{nr}" for nr in range(8)]
        for wire, gate in zip(holding[1:], gates[1:], strict=True):
            assert not wire.still_open() or not wire.unread
            gate.touch()
            assert wire.reply().status == 200


@GREEN_CLASSES
def test_a_worker_without_a_place_leaves_newcomers_to_the_others(tmp_path: Path, worker_class: str) -> None:
    with Server(worker_class=worker_class, workers=2, worker_connections=3) as server, ExitStack() as stack:
        gate = tmp_path / "open"
        stack.callback(gate.touch)
        holding = connect(server, stack, 3)
        for nr, wire in enumerate(holding):
            wire.send(request("GET", f"/gate?open={gate}"))
            until(lambda nr=nr: inside(gate) == nr + 1, "it is in the application")
        for _ in range(50):
            serves_promptly(server)
        gate.touch()
        for wire in holding:
            assert wire.reply().status == 200


BODY = 1000
SLOW = f"POST /body HTTP/1.1\r\nHost: t\r\nContent-Type: a/b\r\nContent-Length: {BODY}\r\n\r\n".encode()


@GREEN_CLASSES
def test_dribbling_bodies_take_no_place(tmp_path: Path, worker_class: str) -> None:
    """There are fewer places than slow clients by far, and all of them are there for others."""
    places, slow = 4, 100
    options = {"worker_connections": places, "body_timeout": 60, "header_timeout": 60, "body_min_rate": 0}
    with Server(worker_class=worker_class, **options) as server, ExitStack() as stack:
        before = server.calls()
        crowd = stack.enter_context(Crowd(server.address, slow, b"b" * BODY, first=SLOW, every=1.0))
        gate = tmp_path / "open"
        stack.callback(gate.touch)
        holding = connect(server, stack, places - 1)
        for wire in holding:
            wire.send(request("GET", f"/gate?open={gate}"))
        until(lambda: inside(gate) == places - 1, "these run at once")
        for _ in range(50):
            serves_promptly(server)
        assert len(crowd.open()) == slow
        gate.touch()
        for wire in holding:
            assert wire.reply().status == 200
        # Their requests have not begun; one that gets its body at last has.
        assert server.calls() == before + places - 1 + 50
        with server.connect() as wire:
            wire.send(SLOW, b"b" * (BODY - 1))
            serves_promptly(server)
            wire.send(b"b")
            assert wire.reply().json()["length"] == BODY


@GREEN_CLASSES
def test_a_thousand_requests_that_wait(worker_class: str) -> None:
    """In one process, at the same time; none waits for another."""
    count, seconds = 1000, 1.0
    with Server(worker_class=worker_class, worker_connections=count) as server, ExitStack() as stack:
        crowd = stack.enter_context(Crowd(server.address, count, first=request("GET", f"/sleep?raw=1&s={seconds}")))
        until(lambda: all(client.heard for client in crowd.clients), "all are answered", every=0.05)
        assert all(bytes(client.heard).startswith(b"HTTP/1.1 200 OK\r\n") for client in crowd.clients)
        lived = time.monotonic() - crowd.clients[-1].born
        assert lived < 15, "not one after the other"
