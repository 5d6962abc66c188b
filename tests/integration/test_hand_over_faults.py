"""kill -9 at every step of a hand-over: only what was with the process that died is lost, nothing is served twice."""

from __future__ import annotations

import itertools
import os
import random
import resource
import signal
import struct
from functools import partial
from pathlib import Path

import pytest

from tests.apps.counted import MEET
from tests.harness import KINDS, Site, Wire, configured, proc, until
from tests.harness.group import Group, Member
from tests.harness.marked import Marked
from tests.harness.transports import CLEAR, HTTP_2, TLS, TRANSPORTS, Transport, is_cut_off
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("a request stays with the process that accepted its connection")

THREADS = pytest.mark.parametrize("threads", [1, 2])
AT_ONCE = 10.0
"""Seconds, generous: what would otherwise wait for a gate waits for it, and not for a time."""


def known(group: Group, member: Member, count: int) -> list[Wire]:
    """Connections that the only member serving has accepted."""
    wires = [group.wire() for _ in range(count)]
    for wire in wires:
        assert wire.get("/").json()["pid"] == member.pid
    return wires


def occupy(group: Group, wires: list[Wire], gate: int, names: str = "running") -> list[str]:
    """Requests that run until the gate is opened, wherever a thread is free."""
    ids = []
    for nr, wire in enumerate(wires):
        ids.append(f"{names}{nr}")
        wire.send(request("GET", f"/?id={ids[-1]}&gate={gate}"))
        until(lambda: group.served()[ids[-1]], "the request is in the application")
    return ids


def quiet(group: Group) -> bool:
    sent, taken = group.counts()
    return group.waiting() == 0 and sent == taken


def close_all(wires: list[Wire]) -> None:
    for wire in wires:
        wire.close()


class Held:
    """The descriptors of members, when they have no connection."""

    def __init__(self, group: Group, *members: Member) -> None:
        until(lambda: all(group.figure(member, "connections") == 0 for member in members), "no connection is open")
        self.counts = {member.pid: member.descriptors() for member in members}

    def same(self) -> None:
        now: dict[int, int] = {}

        def back() -> bool:
            now.update({pid: proc.descriptors(pid) for pid in self.counts})
            return all(now[pid] <= count for pid, count in self.counts.items())

        try:
            until(back, "no descriptor more than before")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.counts} -> {now}") from None


SPARE = 8
"""Connections for `goes_on`."""


def goes_on(group: Group, sender: Member, wires: list[Wire], *others: Member) -> None:
    """Hand-overs work between those that are left; `wires` are connections of `sender`.

    Where a connection goes with its first request it is there for the others; else each is lent.
    """
    asking, *wires = wires
    moves = 5 if group.transport.lends else 1
    filled = group.fill(sender, wires)
    before = sum(group.figure(member, "taken_over") for member in others)
    for count in range(1, 6):
        reply = asking.ask("POST", "/", (), b"x" * 50_000)
        assert reply.json()["length"] == 50_000
        if count <= moves:
            assert reply.json()["pid"] in {member.pid for member in others}
    assert sum(group.figure(member, "taken_over") for member in others) == before + moves
    filled.release()
    until(lambda: quiet(group), f"the channel is empty and known to be: {group.waiting()} {group.counts()}")


@THREADS
@pytest.mark.parametrize("buried", [True, False], ids=["buried", "unburied"])
@pytest.mark.parametrize("fault", ["before_send", "after_send"])
@TRANSPORTS
def test_the_sender_dies(tmp_path: Path, transport: Transport, fault: str, buried: bool, threads: int) -> None:
    """With it, what it has lent: the connection is its own."""
    with Group(tmp_path, threads=threads, transport=transport) as group:
        victim = group.start(fault_point=fault)
        wires = known(group, victim, threads + 2)
        running = occupy(group, wires[:threads], 1)
        survivor = group.start()
        # The victim is busy and leaves newcomers to it.
        close_all(known(group, survivor, 1))
        held = Held(group, survivor)
        wires[threads].send(request("POST", "/?id=asked", (), b"x" * 70_000))
        victim.wait_killed()
        assert all(map(is_cut_off, [*wires[:threads], wires[-1]]))
        if fault == "before_send" or transport.lends:
            assert is_cut_off(wires[threads])
        else:
            told = wires[threads].reply().json()
            assert (told["pid"], told["length"]) == (survivor.pid, 70_000)
        if buried:
            group.bury(victim)
        served = group.served()
        assert [served[id_] for id_ in running] == [1] * threads
        until(lambda: quiet(group), "nothing is left in the channel")
        # The survivor may find that the client of what was lent has left.
        least = fault == "after_send" and not transport.lends
        assert least <= group.served()["asked"] <= (fault == "after_send")
        mine = known(group, survivor, SPARE)
        successor = group.start()
        goes_on(group, survivor, mine, successor)
        close_all([*wires, *mine])
        held.same()


@THREADS
@pytest.mark.parametrize("heir", ["sibling", "successor"])
@pytest.mark.parametrize("fault", ["before_take", "after_take", "before_start"])
@TRANSPORTS
def test_the_receiver_dies(tmp_path: Path, transport: Transport, fault: str, heir: str, threads: int) -> None:
    """All are busy but the victim, so that it is the one that takes the request."""
    with Group(tmp_path, threads=threads, transport=transport) as group:
        sender = group.start()
        close_all(known(group, sender, 1))
        spare = known(group, sender, SPARE)
        wires = known(group, sender, 2 * threads + 1)
        sibling = group.start()
        occupy(group, wires[: 2 * threads], 1)
        assert group.figure(sibling, "taken_over") == threads
        victim = group.start(fault_point=fault)
        asked = wires[-1]
        asked.send(request("POST", "/?id=asked", (), b"x" * 70_000))
        victim.wait_killed()
        assert group.served()["asked"] == 0
        heirs = {sender.pid, sibling.pid}
        if heir == "successor":
            group.bury(victim)
            heirs = {group.start().pid}
        if fault != "before_take":
            assert is_cut_off(asked)
        elif heir == "successor":
            assert asked.reply().json()["pid"] in heirs
        group.open_gate(1)
        assert all(wire.reply().status == 200 for wire in wires[: 2 * threads])
        if fault == "before_take" and heir == "sibling":
            assert asked.reply().json()["pid"] in heirs
        group.bury(victim)
        assert set(group.served().values()) - {group.served()["-"]} == {1}
        assert group.served()["asked"] == (fault == "before_take")
        assert spare[0].get("/?id=idle").status == 200
        if transport is HTTP_2:
            assert asked.get("/?id=another").status == 200, "it was a stream alone"
        until(lambda: quiet(group), "nothing is left in the channel")
        if heir == "sibling":
            goes_on(group, sender, spare[1:], sibling)
        close_all([*wires, *spare])
        until(
            lambda: group.figure(sender, "connections") == group.figure(sibling, "connections") == 0, "all are closed"
        )
        assert sender.descriptors() == sibling.descriptors()


@pytest.mark.parametrize("drift", [-2, -1, 1, 2, 1000], ids=lambda drift: f"sent{drift:+}")
def test_a_count_that_is_wrong_is_put_right(tmp_path: Path, drift: int) -> None:
    """As by a kill between a step and its being counted."""
    with Group(tmp_path) as group:
        first = group.start()
        wires = known(group, first, SPARE)
        second = group.start()
        sent, _ = group.counts()
        group.group[0:8] = struct.pack("=Q", sent + 10 + drift)
        group.group[8:16] = struct.pack("=Q", sent + 10)
        goes_on(group, first, wires, second)


def test_what_no_core_has_sent_is_passed_over(tmp_path: Path) -> None:
    """Messages without a connection wake, and do nothing else; they are not counted."""
    with Group(tmp_path) as group:
        first = group.start()
        wires = known(group, first, SPARE)
        second = group.start()
        for text in (b"!", b"!" * 200):
            assert group.channel.sender.send(text) == len(text)
        until(lambda: first.has_ended() or second.has_ended() or group.waiting() == 0, "it is taken")
        goes_on(group, first, wires, second)


@THREADS
@pytest.mark.parametrize("fault", ["before_send", "after_send", "before_take", "after_take", "before_start"])
@TRANSPORTS
def test_one_of_many_dies_under_load(tmp_path: Path, transport: Transport, fault: str, threads: int) -> None:
    """Lost is at most what was with it: a request on each of its connections, and one it was about to have."""
    with Group(tmp_path, threads=threads, transport=transport) as group:
        for _ in range(3):
            group.start()
        victim = group.start(fault_point=fault)
        clients = 8 * threads + 8
        with Marked(group.address, clients=clients, body=60_000, seconds=0.002, connect=transport.connect) as load:
            until(victim.has_ended, "the victim dies")
            assert victim.status == -signal.SIGKILL
            held = group.figure(victim, "connections") + 1
            load.settle(50)
            group.bury(victim)
            load.settle(200)
            group.start()
            load.settle(200)
            outcomes = load.stop()
        outcomes.check(group.ledger, lost=held)
        until(lambda: quiet(group), "nothing is left in the channel")


WORKERS = 8
ROUNDS = 3


def held_by(server: Site, victim: int) -> int:
    """The most requests a worker that stands still can have: one of each connection, and one it has just got."""
    until(lambda: proc.is_stopped(victim), "it stands still")
    seen = server.get("/board").json()["workers"].get(str(victim))
    return 1 + (seen["connections"] if seen else 0)


@KINDS
@TRANSPORTS
def test_workers_killed_at_any_moment(tmp_path: Path, transport: Transport, worker_class: str) -> None:
    """Each is stopped first, so that the scoreboard says what it has when it is killed."""
    config = f"workers = {WORKERS}\n{configured(worker_class, 2)}{MEET}{transport.lines}"
    dice = random.Random(7)
    ledger = tmp_path / "ledger"
    with Site(config, app="counted:application", workers=WORKERS, env={"LEDGER": str(ledger)}) as server:
        server.wire_type = transport.connect
        held = 0
        with Marked(server.address, clients=24, seconds=0.01, connect=transport.connect) as load:
            load.settle(200)
            for _ in range(ROUNDS):
                # All of a round are killed before one of their successors is: that would be held back for longer.
                before = server.worker_pids()
                for victim in dice.sample(before, WORKERS - 1):
                    load.settle(dice.randrange(1, 20))
                    os.kill(victim, signal.SIGSTOP)
                    held += held_by(server, victim)
                    os.kill(victim, signal.SIGKILL)
                until(partial(renewed, server, before), "the workers are replaced")
            load.settle(500)
            outcomes = load.stop()
        outcomes.check(ledger, lost=held)
        assert len(outcomes.lost) + len(outcomes.ended) <= held
        until(lambda: drained(server), "nothing is left in the channel")


def renewed(server: Site, before: list[int]) -> bool:
    now = server.worker_pids()
    return len(now) == WORKERS and len(set(now) & set(before)) <= 1


def drained(server: Site) -> bool:
    board = server.get("/board").json()
    return bool(board["sent"] == board["taken"])


@pytest.mark.parametrize("transport", [CLEAR, TLS], ids=str)
def test_nobody_takes_what_he_has_no_descriptor_for(tmp_path: Path, transport: Transport) -> None:
    with Group(tmp_path, transport=transport) as group:
        sender = group.start()
        first, second = known(group, sender, 2)
        occupy(group, [first], 1)
        receiver = group.start()
        used = {int(name) for name in os.listdir(f"/proc/{receiver.pid}/fd")}
        lowest = next(number for number in itertools.count() if number not in used)
        before = resource.prlimit(
            receiver.pid, resource.RLIMIT_NOFILE, (lowest, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )
        second.send(request("GET", "/?id=crowded"))
        until(lambda: group.figure(sender, "handed_over") == 1, "it is in the channel")
        assert second.still_open(0.3)
        assert not second.unread
        sent, taken = group.counts()
        assert sent - taken == 1, "it still is"
        resource.prlimit(receiver.pid, resource.RLIMIT_NOFILE, before)
        assert second.reply().json()["pid"] == receiver.pid
        group.open_gate(1)
        assert first.reply().status == 200
