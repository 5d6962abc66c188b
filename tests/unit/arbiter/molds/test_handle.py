"""The arbiter's side of a mold: what it believes, and what becomes of workers of which it never hears."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.channel import SharedChannel
from tricorn.arbiter.molds.handle import MoldHandle
from tricorn.arbiter.molds.requests import HasForked, Here, NotForked, Reply, encode_reply, open_requests
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.policy.commands import Spawn
from tricorn.arbiter.policy.events import Spawned, SpawnFailed
from tricorn.arbiter.process_table import ProcessTable
from tricorn.arbiter.worker_handle import NO_PID, WorkerHandle
from tricorn.workers.native import scoreboard_bytes

from tests.harness import until
from tests.unit.arbiter.log import Log


class House:
    """A process table with a mold, whose part this process plays."""

    def __init__(self) -> None:
        server: Any = SimpleNamespace(log=Log(), worker_age=0)
        self.table = ProcessTable(server, [], [], SharedChannel(None))
        self.pages = Pages(scoreboard_bytes(30), 4)
        requests, self.its_end = open_requests()
        self.mold = MoldHandle(1, os.getpid(), -1, requests)
        self.table.molds[1] = self.mold
        self.children: list[int] = []

    def ask(self, nr: int) -> int:
        """Asks for a worker; returns the end of its pipe that the mold has got."""
        reader, writer = os.pipe()
        page = self.pages.take()
        assert page is not None
        worker: Any = SimpleNamespace(slot=nr, pid=None)
        handle = WorkerHandle(nr, worker, NO_PID, reader, self.pages, page)
        self.mold.ask(handle, b"request", [writer], [writer])
        data, descriptors, _, _ = socket.recv_fds(self.its_end, 100, 3)
        assert data == b"request"
        (end,) = descriptors
        return end

    def child(self, reply: Reply | None = None) -> int:
        """A child that says this, and waits."""
        pid = os.fork()
        if pid == 0:
            if reply is not None:
                self.its_end.send(encode_reply(reply))
            signal.pause()
        self.children.append(pid)
        return pid

    def say(self, reply: Reply) -> None:
        self.its_end.send(encode_reply(reply))

    def heard(self) -> list[Spawned | SpawnFailed]:
        return until(self.table.hear, "something is heard")


@pytest.fixture
def house() -> Iterator[House]:
    made = House()
    yield made
    for pid in made.children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    made.its_end.close()


def test_a_worker_has_the_pid_that_the_kernel_tells(house: House) -> None:
    house.ask(2)
    pid = house.child(Here(2))
    (event,) = house.heard()
    assert isinstance(event, Spawned)
    assert (event.nr, event.pid) == (2, pid)
    assert house.table.handles[2].pid == house.table.handles[2].worker.pid == pid
    assert house.mold.pending == {}


def test_a_process_that_is_no_child_is_no_worker(house: House) -> None:
    """A grandchild, as whatever a mold starts."""
    house.ask(2)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        grandchild = os.fork()
        if grandchild == 0:
            house.its_end.send(encode_reply(Here(2)))
            os.write(writer, b"x")
            os._exit(0)
        signal.pause()
    house.children.append(pid)
    assert os.read(reader, 1) == b"x"
    assert house.table.hear() == []
    assert list(house.mold.pending) == [2]
    for end in (reader, writer):
        os.close(end)


def test_a_child_that_nobody_has_asked_for_is_killed(house: House) -> None:
    pid = house.child(Here(9))
    until(
        lambda: house.table.hear() == [] and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), "it ends"
    )


def test_only_the_mold_says_that_it_could_not_fork(house: House) -> None:
    os.close(house.ask(2))
    os.close(house.ask(3))
    house.child(NotForked(2, "a lie"))
    house.say(NotForked(3, "the truth"))
    assert house.heard() == [SpawnFailed(3, "the truth")]
    assert list(house.mold.pending) == [2]


def test_one_that_ends_before_it_says_anything_is_no_worker(house: House) -> None:
    end = house.ask(2)
    assert house.table.hear() == []
    house.say(HasForked(2))
    assert house.table.hear() == [], "its process may be about to say so"
    os.close(end)
    assert house.heard() == [SpawnFailed(2, "it was killed at once")]


def test_what_a_dead_mold_has_forked_may_still_come(house: House) -> None:
    first = house.ask(2)
    os.close(house.ask(3))
    pid = house.child(Here(2))
    house.mold.end()
    events: list[Spawned | SpawnFailed] = []
    until(lambda: events.extend(house.table.hear()) or len(events) == 2, "both are known")
    assert sorted((event.nr, type(event)) for event in events) == [(2, Spawned), (3, SpawnFailed)]
    assert house.table.handles[2].pid == pid
    assert house.table.molds == {}
    os.close(first)


def test_a_request_that_cannot_be_sent_has_failed(house: House) -> None:
    reader, writer = os.pipe()
    page = house.pages.take()
    assert page is not None
    worker: Any = SimpleNamespace(slot=2, pid=None)
    house.mold.ask(WorkerHandle(2, worker, NO_PID, reader, house.pages, page), b"x" * (8 << 20), [writer], [writer])
    (event,) = house.heard()
    assert isinstance(event, SpawnFailed)
    assert "could not be asked: Message too long" in event.reason


def test_slots_that_are_asked_for_are_taken(house: House) -> None:
    os.close(house.ask(1))
    assert house.table._free_slot() == 2


def test_a_mold_that_ended_a_moment_ago_forks_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy has not heard of its end when a worker is asked of it."""
    house.mold.end()
    assert house.table.hear() == []
    assert house.table.molds == {}
    monkeypatch.setattr(house.table.hiring, "hire", lambda position, generation: SimpleNamespace(slot=position.slot))
    config = SimpleNamespace(pre_fork=lambda server, worker: None)
    generation: Any = SimpleNamespace(pages=house.pages, config=config, log=house.table.server.log)
    free = len(os.listdir("/proc/self/fd"))
    event = house.table.spawn(Spawn(2, 1, siblings=False, mold=1), generation, ())
    assert event == SpawnFailed(2, "its mold has ended")
    assert len(os.listdir("/proc/self/fd")) == free
    pages = [house.pages.take() for _ in range(4)]
    assert None not in pages, "its page was given back"
