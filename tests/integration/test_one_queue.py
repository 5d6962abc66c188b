"""One queue for all workers: a request never waits behind a busy worker while another is idle."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.apps.counted import MEET
from tests.harness import EVENT_LOOPS, KINDS, Site, Wire, at_once, configured, each, proc, until
from tests.harness.group import Group
from tests.harness.marked import Marked, calls, ran
from tests.harness.spread import by_worker
from tests.harness.wire import Reply, chunked, request

pytestmark = pytest.mark.beyond_reference("there a request waits for the worker that has its connection")

KEEP = "keepalive = 60\ntimeout = 60\n"
"""Connections stay as long as a test may take, and so does a call."""


def threads(worker_class: str) -> int:
    """How many requests a worker of this file runs at once: on threads or, as far as it goes, on greenlets."""
    return at_once(worker_class, 2)


def settings(worker_class: str, workers: int, count: int = 2) -> str:
    return f"{configured(worker_class, count)}workers = {workers}\n{MEET}{KEEP}"


def site(tmp_path: Path, worker_class: str, workers: int, config: str = "", **options: Any) -> Site:
    environment = {"LEDGER": str(tmp_path / "ledger")}
    config = settings(worker_class, workers) + config
    return Site(config, app="counted:application", workers=workers, env=environment, **options)


class Gates:
    """Requests that stay in the application for as long as they are told to."""

    def __init__(self, tmp_path: Path, stack: ExitStack) -> None:
        self._directory = tmp_path
        self._wires: list[Wire] = []
        self.running: dict[Path, int] = {}
        """In which process each is: not always in the one that has its connection, if that was slow to begin it."""
        stack.callback(self._open)

    def hold(self, wire: Wire) -> None:
        """The request is in the application when this returns; it ends when there is a file of this name."""
        gate = self._directory / f"gate{len(self._wires)}"
        self._wires.append(wire)
        wire.send(request("GET", f"/?id={gate.name}&gate={gate}"))
        self.running[gate] = until(lambda: ran(self._directory / "ledger", gate.name), "it is in the application")

    def count(self, pid: int) -> int:
        return list(self.running.values()).count(pid)

    def finish(self) -> None:
        self._open()
        for wire in self._wires:
            assert wire.reply().status == 200

    def _open(self) -> None:
        for gate in self.running:
            gate.touch()


def hold_the_gil(wire: Wire, tmp_path: Path) -> Callable[[], None]:
    """The worker of this connection runs C code that keeps the GIL; until what is returned is called."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    wire.send(request("GET", f"/c?id=c&fifo={fifo}"))
    until(lambda: calls(tmp_path / "ledger")["c"], "the call has begun")

    def release() -> None:
        if fifo.exists():
            os.close(os.open(fifo, os.O_RDWR))
            fifo.unlink()

    return release


@KINDS
@pytest.mark.parametrize("workers", [2, 4])
def test_no_connection_waits_behind_its_busy_worker(tmp_path: Path, worker_class: str, workers: int) -> None:
    """All workers but one are busy for as long as it takes; every connection there is gets its answers."""
    most = threads(worker_class)
    with site(tmp_path, worker_class, workers) as server, ExitStack() as stack:
        wires = by_worker(server, stack, 100, each=most + 1)
        idle, *busy = wires
        holding = [wire for pid in busy for wire in wires[pid][:most]]
        gates = Gates(tmp_path, stack)
        for wire in holding:
            gates.hold(wire)
        asking = [(pid, wire) for pid, each in wires.items() for wire in each if wire not in holding]
        waits: dict[bool, list[float]] = {True: [], False: []}
        for nr, (pid, wire) in enumerate(asking):
            began = time.monotonic()
            assert gates.count(wire.get(f"/?id=request{nr}").json()["pid"]) < most
            waits[pid == idle].append(time.monotonic() - began)
        assert statistics.median(waits[False]) < 0.1 + 5 * statistics.median(waits[True]), "at once"
        gates.finish()
    called = calls(tmp_path / "ledger")
    assert {count for id_, count in called.items() if id_ != "-"} == {1}


@KINDS
def test_a_request_that_takes_seconds_is_nobody_elses(tmp_path: Path, worker_class: str) -> None:
    """Clients that ask all the time, and one call that lasts until each of them has had many answers."""
    clients, gate = 20, tmp_path / "gate"
    with site(tmp_path, worker_class, 4) as server, ExitStack() as stack:
        stack.callback(gate.touch)
        wire = stack.enter_context(server.connect())
        with Marked(server.address, clients=clients, seconds=0.005) as load:
            load.settle(100)
            wire.send(request("GET", f"/?id=long&gate={gate}"))
            until(lambda: calls(tmp_path / "ledger")["long"], "it has begun")

            before = load.outcomes.count()

            def clients_answered() -> set[str]:
                return {id_.partition(".")[0] for id_ in load.outcomes.answered[before + 2 * clients :]}

            until(lambda: len(clients_answered()) == clients, "no client waits for the long request")
            assert wire.still_open()
            assert not wire.unread
            gate.touch()
            assert wire.reply().status == 200
            outcomes = load.stop()
        outcomes.check(tmp_path / "ledger")


@KINDS
def test_without_hand_over_it_waits(tmp_path: Path, worker_class: str) -> None:
    most = threads(worker_class)
    with site(tmp_path, worker_class, 2, extra=("--no-handover",)) as server, ExitStack() as stack:
        wires = by_worker(server, stack, 0, each=most + 1)
        busy, idle = wires
        gates = Gates(tmp_path, stack)
        for wire in wires[busy][:most]:
            gates.hold(wire)
        waiting = wires[busy][most]
        waiting.send(request("GET", "/"))
        for wire in wires[idle]:
            assert wire.get("/").json()["pid"] == idle
        assert waiting.still_open(0.3)
        assert not waiting.unread
        gates.finish()
        assert waiting.reply().json()["pid"] == busy
        assert totals(server)["handed_over"] == 0


@KINDS
def test_a_worker_whose_gil_is_held_keeps_nothing_to_itself(tmp_path: Path, worker_class: str) -> None:
    """Neither what it had accepted, nor what it has just accepted, nor what comes: all are answered meanwhile."""
    with site(tmp_path, worker_class, 2) as server, ExitStack() as stack:
        holding, *known = [wire for wires in by_worker(server, stack, 0, each=4).values() for wire in wires]
        head = request("POST", "/", (), b"0123456789")
        # In an event loop a call begins with its head, and is held up with the loop.
        half = 0 if worker_class in EVENT_LOOPS else 4
        begun = [stack.enter_context(server.connect()).send(head[:-5]) for _ in range(half)]
        silent = [stack.enter_context(server.connect()) for _ in range(4)]
        release = hold_the_gil(holding, tmp_path)
        stack.callback(release)
        for wire in begun:
            wire.send(head[-5:])
        new = [stack.enter_context(server.connect()) for _ in range(4)]
        asking = [*known, *silent, *new]
        for wire in asking:
            wire.send(request("GET", "/"))
        told = {wire.reply().json()["pid"] for wire in [*asking, *begun]}
        assert holding.still_open()
        assert not holding.unread
        stuck = ran(tmp_path / "ledger", "c")
        assert stuck not in told
        release()
        assert holding.reply().json()["pid"] == stuck


def totals(server: Site) -> dict[str, int]:
    """What the workers have counted, all together."""
    board = server.get("/board").json()
    sums: dict[str, int] = {"sent": board["sent"], "taken": board["taken"]}
    for worker in board["workers"].values():
        for name, count in worker.items():
            if isinstance(count, int):
                sums[name] = sums.get(name, 0) + count
    return sums


@KINDS
def test_the_wait_of_a_request_that_moved_is_told(tmp_path: Path, worker_class: str) -> None:
    """All threads are busy; the request moves when one of another worker becomes free."""
    most = threads(worker_class)
    log = "accesslog = '-'\naccess_log_format = 'line %(U)s %(queue_time)s %(p)s %(s)s'\n"
    with site(tmp_path, worker_class, 2, log) as server, ExitStack() as stack:
        wires = by_worker(server, stack, 0, each=most + 1)
        first, second = wires
        gates = Gates(tmp_path, stack)
        for wire in [*wires[first][:most], *wires[second][:most]]:
            gates.hold(wire)
        asked = wires[first][most]
        sent = time.monotonic()
        asked.send(request("GET", "/moved?id=moved"))
        assert asked.still_open(0.3)
        assert not asked.unread
        next(gate for gate, pid in gates.running.items() if pid == second).touch()
        told = asked.reply().json()
        elapsed = time.monotonic() - sent
        gates.finish()
        assert told["pid"] == second
        assert worker_class in EVENT_LOOPS or 0.25 < told["queue_time"] <= elapsed
        assert int(told["remote_port"]) == asked.sock.getsockname()[1]
        (line,) = server.out.wait(r"line /moved (\d+) <?(\d+)>? 200")
        assert 250_000 < int(line[1]) <= elapsed * 1e6
        assert int(line[2]) == second
        counted = totals(server)
        assert counted["handed_over"] == counted["taken_over"] == counted["sent"] == counted["taken"] >= 1
        waited = board(server)[str(second)]["queue_time"]
        assert any(int(floor) > 100_000 for floor in waited)


PIPELINED = pytest.mark.parametrize("depth", [1, 4], ids=["one_at_a_time", "pipelined"])
PIPELINED_KINDS = pytest.mark.parametrize(
    ("worker_class", "depth"),
    # Each class, and each way to ask under one of threads and one without: all of both would take twice as long.
    each("sync", "gthread", "gevent", *EVENT_LOOPS, values=[1, 4, 1, 4]),
)


@PIPELINED_KINDS
@pytest.mark.timeout(120)
def test_signals_in_the_middle_lose_nothing_and_repeat_nothing(tmp_path: Path, worker_class: str, depth: int) -> None:
    """More and fewer workers, reloads, one worker told to leave, and the end."""
    with site(tmp_path, worker_class, 3) as server:
        with Marked(server.address, clients=16, depth=depth, seconds=0.008, body=20_000) as load:
            load.settle(100)
            server.signal(signal.SIGTTIN)
            until(lambda: len(server.worker_pids()) == 4, "a fourth worker")
            load.settle(50)
            server.hup(workers=3)
            load.settle(50)
            leaving = server.worker_pids()[0]
            os.kill(leaving, signal.SIGTERM)
            until(lambda: leaving not in server.worker_pids(), "it leaves")
            until(lambda: len(server.worker_pids()) == 3, "it is replaced")
            load.settle(50)
            server.signal(signal.SIGTTOU)
            until(lambda: len(server.worker_pids()) == 2, "two workers")
            for _ in range(3):
                server.hup(workers=3)
                load.settle(20)
            assert totals(server)["taken"] > 0
            load.leaving()
            server.signal(signal.SIGTERM)
            assert server.wait_exit() == 0
            outcomes = load.join()
        outcomes.check(tmp_path / "ledger")
        assert not server.log.matching("did not finish|Traceback|panicked|SIGKILL"), server.log.text


@PIPELINED
@pytest.mark.parametrize("other", each("gthread", "gevent"))
def test_generations_with_other_scoreboards_hand_over_to_each_other(tmp_path: Path, other: str, depth: int) -> None:
    """The number of threads decides how large a worker's page is: those of another generation lie elsewhere."""
    with site(tmp_path, "sync", 3) as server:
        with Marked(server.address, clients=16, depth=depth, seconds=0.008, body=20_000) as load:
            load.settle(100)
            for worker_class, workers, count in [(other, 2, 8), ("sync", 3, 1), (other, 3, 5), ("sync", 5, 1)]:
                server.configure(settings(worker_class, workers, count))
                server.hup(workers=workers)
                load.settle(50)
            outcomes = load.stop()
        outcomes.check(tmp_path / "ledger")
        assert not server.log.matching("did not finish|Traceback|panicked|SIGKILL"), server.log.text


@PIPELINED_KINDS
def test_workers_that_have_served_their_number_lose_nothing(tmp_path: Path, worker_class: str, depth: int) -> None:
    config = "max_requests = 60\nmax_requests_jitter = 40\n"
    with site(tmp_path, worker_class, 2, config) as server:
        with Marked(server.address, clients=12, depth=depth, seconds=0.002) as load:
            server.log.wait("Autorestarting worker", count=6)
            load.settle(20)
            outcomes = load.stop()
        outcomes.check(tmp_path / "ledger")


@KINDS
def test_a_thousand_hand_overs_leave_nothing_behind(tmp_path: Path, worker_class: str) -> None:
    """With bodies in memory, in the message, in a file beside it, and on disk."""
    body = ("--body-buffer-size", "60000")
    with site(tmp_path, worker_class, 3, extra=body) as server:
        with Marked(server.address, clients=24, seconds=0.002, body=100_000, depth=2, pause=0) as load:
            load.settle(300)
            if worker_class != "asgi":  # whose applications read bodies as they come
                # The first body that a worker writes to disk makes a thread for that, with a descriptor.
                until(lambda: all(each["spooled"] for each in board(server).values()), "bodies on disk", within=60)
        pids = [server.pid, *server.worker_pids()]
        until(lambda: sum(each["connections"] for each in board(server).values()) <= 1, "no connection is left")
        before = {pid: proc.descriptors(pid) for pid in pids}
        first = totals(server)
        more: dict[str, Any] = {"pause": 0, "seed": 1, "first": 10**6}
        with Marked(server.address, clients=24, seconds=0.001, body=100_000, depth=2, **more) as load:
            until(
                lambda: totals(server)["taken"] - first["taken"] > 1000, "a thousand hand-overs", within=120, every=0.1
            )
            outcomes = load.stop()
        outcomes.check(tmp_path / "ledger")
        until(lambda: sum(each["connections"] for each in board(server).values()) <= 1, "no connection is left")
        after = totals(server)
        assert after["sent"] == after["taken"]
        assert after["handed_over"] == after["taken_over"] == after["taken"]
        until(
            lambda: all(proc.descriptors(pid) <= before[pid] for pid in pids),
            f"no descriptor more: {before} -> {[proc.descriptors(pid) for pid in pids]}",
        )
        assert [server.pid, *server.worker_pids()] == pids
        assert len(server.leftovers()) == len(pids)


def board(server: Site) -> dict[str, Any]:
    workers: dict[str, Any] = server.get("/board").json()["workers"]
    return workers


def test_pipelined_requests_are_answered_in_order_wherever_they_are_served(tmp_path: Path) -> None:
    with site(tmp_path, "sync", 3) as server:
        with Marked(server.address, clients=10, seconds=0.002, depth=20, requests=100, body=3000) as load:
            outcomes = load.join()
        outcomes.check(tmp_path / "ledger")
        assert len(outcomes.answered) == 1000
        assert re.search(r"\d", str(totals(server)["taken"]))
        assert totals(server)["taken"] > 0


class Pair:
    """Two members of a group, of which one is busy."""

    def __init__(self, directory: Path, threads: int) -> None:
        self.group = Group(directory, threads=threads, keepalive=60.0, body_buffer_size=100_000)
        self.first = self.group.start()
        self.wires = [self.group.wire() for _ in range(40)]
        for wire in self.wires:
            assert wire.get("/").json()["pid"] == self.first.pid
        self.filled = self.group.fill(self.first, self.wires)
        self.second = self.group.start()

    def stray(self) -> Wire:
        """A connection of the worker that is busy."""
        self.before = self.group.figure(self.second, "taken_over")
        return self.wires.pop()

    def moved(self, reply: Reply, *, again: bool = False) -> None:
        """It was answered by the other one; which took it over, if it had not its connection (`again`)."""
        assert reply.status == 200
        assert reply.json()["pid"] == self.second.pid
        if not again:
            assert self.group.figure(self.second, "taken_over") > self.before


@pytest.fixture(scope="module", params=[1, 2], ids=["one_thread", "two_threads"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(tmp_path_factory.mktemp("pair"), request.param)
    with pair.group:
        yield pair


class TestWhatMoves:
    """One of two workers is busy for as long as it takes; what comes by a connection that it has goes to the other."""

    def test_bodies_of_any_size(self, pair: Pair) -> None:
        """In the message, in a file of memory beside it, and in the file that the body was written to on arrival."""
        for size in (1, 30_000, 33_000, 90_000, 110_000, 3_000_000):
            body = os.urandom(size)
            reply = pair.stray().ask("POST", "/", (), body)
            pair.moved(reply)
            assert reply.json()["sha256"] == hashlib.sha256(body).hexdigest()

    def test_chunked_bodies(self, pair: Pair) -> None:
        for size in (1, 40_000, 300_000):
            body = os.urandom(size)
            wire = pair.stray().send(request("POST", "/", [("Transfer-Encoding", "chunked")]), chunked([body, body]))
            reply = wire.reply()
            pair.moved(reply)
            assert reply.json()["sha256"] == hashlib.sha256(body + body).hexdigest()
            pair.moved(wire.get("/"), again=True)

    def test_trailers_make_a_request_stay(self, tmp_path: Path) -> None:
        pair = Pair(tmp_path, 1)
        with pair.group:
            wire = pair.stray()
            wire.send(request("POST", "/", [("Transfer-Encoding", "chunked")]), chunked([b"x"], b"Checksum: 1\r\n"))
            assert wire.still_open(0.2)
            assert not wire.unread
            pair.filled.release()
            told = wire.reply().json()
            assert (told["length"], told["pid"]) == (1, pair.first.pid)

    def test_a_body_that_was_asked_for(self, pair: Pair) -> None:
        wire = pair.stray()
        wire.send(request("POST", "/", [("Content-Length", "3"), ("Expect", "100-continue")]))
        wire.interim()
        reply = wire.send(b"abc").reply()
        pair.moved(reply)
        assert reply.json()["length"] == 3

    def test_what_was_sent_ahead(self, pair: Pair) -> None:
        """Pipelined requests go with their connection, whole ones and one that is not complete yet."""
        wire = pair.stray()
        last = request("POST", "/?id=last", (), b"0123456789")
        wire.send(*(request("POST", f"/?id={nr}", (), b"x" * 20_000 * nr) for nr in range(1, 6)), last[:-4])
        for nr in range(1, 6):
            reply = wire.reply()
            assert (reply.json()["id"], reply.json()["length"]) == (str(nr), 20_000 * nr)
            pair.moved(reply, again=nr > 1)
        assert wire.send(last[-4:]).reply().json()["length"] == 10

    def test_a_client_that_says_no_more(self, pair: Pair) -> None:
        wire = pair.stray().send(request("POST", "/", (), b"x" * 1000)).finish_sending()
        pair.moved(wire.reply())
        wire.closed()

    def test_a_connection_for_one_request(self, pair: Pair) -> None:
        for raw in (request("GET", "/", [("Connection", "close")]), request("GET", "/", version="1.0")):
            wire = pair.stray().send(raw)
            reply = wire.reply()
            pair.moved(reply)
            assert reply.closes
            wire.closed()

    def test_hand_over_keeps_the_peer_address(self, pair: Pair) -> None:
        wire = pair.stray()
        told = wire.get("/").json()
        assert (told["remote"], int(told["port"])) == wire.sock.getsockname()[:2]

    def test_it_stays_where_it_went(self, pair: Pair) -> None:
        wire = pair.stray()
        pair.moved(wire.get("/"))
        before = pair.group.counts()
        for _ in range(20):
            pair.moved(wire.get("/"), again=True)
        assert pair.group.counts() == before
