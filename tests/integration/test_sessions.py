"""Requests of one session go to the worker that has it (setting `affinity`)."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tricorn.control.client import Control

from tests.harness import KINDS, Site, Wire, configured, proc, until
from tests.harness.spread import by_worker
from tests.harness.transports import CLEAR, TRANSPORTS, Transport
from tests.harness.wire import Reply, request

pytestmark = pytest.mark.beyond_reference("there a session needs one worker, or a balancer")

NAMED = "affinity = 'header:x-session'\n"
LINE = r"Requests of one session go to one worker \(header:x-session; affinity\)\."


def site(worker_class: str, more: str = NAMED, workers: int = 2) -> Site:
    lines = f"{configured(worker_class, 2)}workers = {workers}\nkeepalive = 60\ntimeout = 60\n"
    return Site(lines + "control_socket = 'ctl'\n" + more, app="sessions:application", workers=workers)


class Session:
    """One that a worker has begun."""

    def __init__(self, reply: Reply) -> None:
        self.pid: int = reply.json()["pid"]
        self.name = reply.get("X-Session") or ""

    def ask(self, wire: Wire, target: str = "/", body: bytes | None = None) -> Reply:
        return wire.ask("GET" if body is None else "POST", target, (("X-Session", self.name),), body)

    def send(self, wire: Wire, target: str = "/") -> None:
        wire.send(request("GET", target, (("X-Session", self.name),)))

    def is_served(self, wire: Wire, target: str = "/", body: bytes | None = None) -> int:
        """The request counts in the session; how many did before."""
        reply = self.ask(wire, target, body)
        assert (reply.status, reply.json()["pid"]) == (200, self.pid), reply
        return int(reply.json()["count"])

    def is_over(self, wire: Wire) -> None:
        """The application that is asked does not know it."""
        reply = self.ask(wire)
        assert (reply.status, reply.json()["count"]) == (404, None), reply


def one_each(server: Site, transport: Transport = CLEAR) -> list[Session]:
    """A session in each worker."""
    found: dict[int, Session] = {}
    while len(found) < len(server.worker_pids()):
        with ExitStack() as stack:
            wires = [stack.enter_context(transport.connect(server.address)) for _ in server.worker_pids()]
            for wire in wires:  # at once, so that not all go to the same worker
                wire.send(request("GET", "/new?s=0.01"))
            sessions = [Session(wire.reply()) for wire in wires]
        found |= {session.pid: session for session in sessions}
    return list(found.values())


@TRANSPORTS
@KINDS
def test_each_request_of_a_session_is_served_where_it_is(worker_class: str, transport: Transport) -> None:
    with site(worker_class, NAMED + transport.lines) as server, ExitStack() as stack:
        server.log.wait(LINE)
        sessions = one_each(server, transport)
        wires = by_worker(server, stack, connect=partial(transport.connect, server.address), each=2)
        for wire in (wire for some in wires.values() for wire in some):
            for session in sessions:
                count = session.is_served(wire)
                assert session.is_served(wire, body=b"x" * 300_000) == count + 1, "a large one"
                with transport.connect(server.address) as fresh:
                    assert session.is_served(fresh) == count + 2
        assert {row["pid"] for row in told(server)} == set(server.worker_pids())


@KINDS
def test_without_the_setting_it_is_as_elsewhere(worker_class: str) -> None:
    """Else the others here would prove nothing."""
    with site(worker_class, "affinity = 'off'\n") as server, ExitStack() as stack:
        wires = by_worker(server, stack, each=1)
        (one, first), (_, second) = ((pid, some[0]) for pid, some in wires.items())
        session = Session(first.get("/new"))
        session.is_over(second if session.pid == one else first)
        assert told(server) == []


@TRANSPORTS
@KINDS
def test_a_request_waits_for_the_worker_of_its_session_and_no_other_does(
    worker_class: str, transport: Transport, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    most = 1 if worker_class == "sync" else 2
    with site(worker_class, NAMED + transport.lines) as server, ExitStack() as stack:
        stack.callback(gate.touch)
        session, _ = one_each(server, transport)
        other = stack.enter_context(transport.connect(server.address))
        holding = [stack.enter_context(transport.connect(server.address)) for _ in range(most)]
        for wire in holding:
            session.send(wire, f"/?gate={gate}")
        until(lambda: running(server, session.pid) >= most, "its worker is busy")
        waiting = stack.enter_context(transport.connect(server.address))
        session.send(waiting)
        for _ in range(10):
            assert other.get("/").json()["pid"] != session.pid
        gate.touch()
        replies = [wire.reply() for wire in (*holding, waiting)]
        assert [(reply.status, reply.json()["pid"]) for reply in replies] == [(200, session.pid)] * (most + 1)


@TRANSPORTS
@KINDS
def test_sessions_of_a_killed_worker_are_over_and_others_go_on(worker_class: str, transport: Transport) -> None:
    with site(worker_class, NAMED + transport.lines) as server:
        lost, kept = one_each(server, transport)
        os.kill(lost.pid, signal.SIGKILL)
        until(lambda: lost.pid not in server.worker_pids() and len(server.worker_pids()) == 2, "it has a successor")
        for _ in range(4):
            with transport.connect(server.address) as wire:
                lost.is_over(wire)
            with transport.connect(server.address) as wire:
                kept.is_served(wire)


@pytest.mark.parametrize("worker_class", ["gthread", "asgi"])
def test_a_worker_that_leaves_has_its_sessions_to_the_end_and_no_new_ones(worker_class: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with site(worker_class, NAMED + "graceful_timeout = 60\n") as server, ExitStack() as stack:
        stack.callback(gate.touch)
        sessions = one_each(server)
        before = {session.pid for session in sessions}
        held = stack.enter_context(server.connect())
        sessions[0].send(held, f"/?gate={gate}")
        until(lambda: running(server, sessions[0].pid) == 1, "its worker has a call")
        server.signal(signal.SIGHUP)
        until(lambda: len(set(server.worker_pids()) - before) == 2 and len(server.worker_pids()) == 3, "one leaves")
        until(lambda: server.get("/").json()["pid"] not in before, "new workers accept")
        for _ in range(5):
            with server.connect() as wire:
                sessions[0].is_served(wire)
            with server.connect() as wire:
                assert Session(wire.get("/new")).pid not in before
        gate.touch()
        assert held.reply().status == 200
        until(lambda: not set(server.worker_pids()) & before, "it has left")
        for session in sessions:
            with server.connect() as wire:
                session.is_over(wire)


@pytest.mark.parametrize("worker_class", ["gthread", "asgi"])
def test_sessions_of_workers_that_stay_live_through_every_number_of_workers(worker_class: str) -> None:
    with site(worker_class, workers=4) as server:
        sessions = one_each(server)
        for sign, count in ((signal.SIGTTOU, 3), (signal.SIGTTOU, 2), *((signal.SIGTTIN, n) for n in (3, 4, 5, 6))):
            server.signal(sign)
            until(partial(has_workers, server, count), f"{count} workers")
            there = set(server.worker_pids())
            for session in sessions:
                with server.connect() as wire:
                    session.is_served(wire) if session.pid in there else session.is_over(wire)
        assert sum(session.pid in set(server.worker_pids()) for session in sessions) == 2


def test_a_client_that_names_its_session_itself_stays_with_the_worker_that_it_met_first() -> None:
    with site("gthread", "affinity = 'query:room'\n") as server, ExitStack() as stack:
        wires = [wire for some in by_worker(server, stack, each=2).values() for wire in some]
        for room in "abc":
            assert len({wire.get(f"/?room={room}").json()["pid"] for wire in wires}) == 1


@pytest.mark.parametrize("worker_class", ["gthread", "asgi"])
def test_sessions_begin_where_the_fewest_are(worker_class: str) -> None:
    """All of them come by one connection, as a front end has it."""
    with site(worker_class, "affinity = 'query:room'\n", workers=4) as server, server.connect() as wire:
        begun = [wire.get(f"/?room={room}").json()["pid"] for room in range(120)]
        assert set(begun) == set(server.worker_pids())
        # 30 each, but a worker that is waiting for a processor is not idle.
        assert min(Counter(begun).values()) >= 15, Counter(begun)
        for room in range(0, 120, 7):
            with server.connect() as fresh:
                assert {each.get(f"/?room={room}").json()["pid"] for each in (fresh, wire)} == {begun[room]}


def test_the_metrics_count_sessions() -> None:
    with site("sync", NAMED + "admin_bind = '127.0.0.1:0'\n") as server, ExitStack() as stack:
        wires = by_worker(server, stack, each=1)
        session = Session(next(iter(wires.values()))[0].get("/new"))
        other = next(some[0] for pid, some in wires.items() if pid != session.pid)
        session.is_served(other)
        session.is_served(other)
        with Control.connect(str(server.directory / "ctl")) as control:
            stats = control.ask("stats")["figures"]
        assert (stats["sessions_learned"], stats["sessions_followed"]) == (1, 1), "the second one has moved there"


def told(server: Site) -> list[dict[str, Any]]:
    """The sessions of each worker, as `tricorn ctl sessions` tells them."""
    with Control.connect(str(server.directory / "ctl")) as control:
        return list(control.ask("sessions")["workers"])


def has_workers(server: Site, count: int) -> bool:
    return len(server.worker_pids()) == count


def running(server: Site, pid: int) -> int:
    with Control.connect(str(server.directory / "ctl")) as control:
        return sum(row["pid"] == pid for row in control.ask("requests")["requests"])


@pytest.mark.parametrize("worker_class", ["gthread", "asgi"])
def test_whatever_happens_to_workers_a_session_is_begun_where_it_is(worker_class: str) -> None:
    """Clients with sessions ask all the time, while workers are killed, replaced, added and taken away by the dice."""
    dice = random.Random(7)
    over = threading.Event()
    served: list[int] = []
    ended: list[int] = []
    with site(worker_class, NAMED + "graceful_timeout = 60\n", workers=3) as server, ThreadPoolExecutor(4) as threads:
        clients = [threads.submit(converse, server, over, served, ended) for _ in range(4)]
        try:
            while len(ended) < 12:
                enough = len(served) + 40
                until(partial(has, served, enough), "sessions are served")
                before, deed = set(server.worker_pids()), dice.choice(DEEDS)
                if deed == signal.SIGKILL:
                    os.kill(dice.choice(sorted(before)), deed)
                elif deed != signal.SIGTTOU or len(before) > 2:
                    server.signal(deed)
                else:
                    continue
                until(partial(has_others, server, before), f"{deed.name} has an effect")
        finally:
            over.set()
        for client in clients:
            client.result()


DEEDS = [signal.SIGKILL, signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU]


def converse(server: Site, over: threading.Event, served: list[int], ended: list[int]) -> None:
    """Notes the workers of requests that were served in their sessions, and those with which sessions ended."""
    while not over.is_set():
        session = None
        with suppress(OSError, AssertionError), server.connect() as wire:
            reply = wire.get("/new")
            session = Session(reply) if reply.status == 200 else None
        while session and not over.is_set():
            try:
                with server.connect() as wire:
                    reply = session.ask(wire)
            except (OSError, AssertionError):  # the worker that had the request was killed
                continue
            if reply.status == 503:
                continue
            if reply.status == 200:
                assert reply.json()["pid"] == session.pid
                served.append(session.pid)
            else:
                until(partial(is_gone, session.pid), "a session ends with its worker only")
                ended.append(session.pid)
                session = None


def has(noted: list[int], count: int) -> bool:
    return len(noted) >= count


def has_others(server: Site, before: set[int]) -> bool:
    return set(server.worker_pids()) != before


def is_gone(pid: int) -> bool:
    return not proc.is_running(pid)
