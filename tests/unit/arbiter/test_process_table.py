"""What a worker leaves behind, and who answers what it had sent to the others."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.channel import Channel, SharedChannel, open_channel
from tricorn.arbiter.loop import Loop
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.policy.events import ChildExited, Told
from tricorn.arbiter.policy.state import State
from tricorn.arbiter.process_table import ProcessTable, _serving, only_worker
from tricorn.arbiter.worker_handle import WorkerHandle
from tricorn.errors import ExitCode
from tricorn.workers.messages import BootFailed, Decoder, encode
from tricorn.workers.native import scoreboard_bytes

from tests.harness import page
from tests.unit.arbiter.log import Log
from tests.unit.arbiter.policy.support import QUIET


class Warnings(Log):
    def warning(self, message: str, /, *arguments: object) -> None:
        self.append(message % arguments)


class House:
    """A processes whose workers are entries of its books."""

    def __init__(self, channel: Channel | None) -> None:
        self.log = Warnings()
        self.pages = Pages(scoreboard_bytes(30), 4)
        server: Any = SimpleNamespace(log=self.log, attach=lambda *given: None, is_managing=False)
        self.processes = ProcessTable(server, [], [], SharedChannel(channel))

    def worker(self, nr: int, *, hands_over: bool) -> WorkerHandle:
        worker: Any = SimpleNamespace(slot=1, spec=SimpleNamespace(hands_over=hands_over))
        page = self.pages.take()
        assert page is not None
        handle = WorkerHandle(nr, worker, 2**22 + nr, -1, self.pages, page)
        self.processes.handles[nr] = handle
        return handle

    def waits(self) -> socket.socket:
        """A client whose request is in the channel."""
        client, served = socket.socketpair()
        channel = self.processes.shared.channel
        assert channel is not None
        with served:
            socket.send_fds(channel.sender, [b"request"], [served.fileno()])
        client.setblocking(False)
        return client


@pytest.fixture
def house() -> Iterator[House]:
    channel = open_channel()
    assert channel is not None
    yield House(channel)
    channel.close()


def is_answered(client: socket.socket) -> bool:
    try:
        return client.recv(4096).startswith(b"HTTP/1.1 503 ")
    except BlockingIOError:
        return False


def test_what_one_has_sent_is_taken_by_the_others(house: House) -> None:
    one, _ = house.worker(1, hands_over=True), house.worker(2, hands_over=True)
    with house.waits() as client:
        house.processes.remove(one)
        assert not is_answered(client)


def test_what_the_last_one_has_sent_waits_for_its_successor(house: House) -> None:
    last = house.worker(1, hands_over=True)
    with house.waits() as client:
        house.processes.remove(last)
        assert not is_answered(client)


def test_what_the_last_one_has_sent_of_those_that_hand_over_is_answered(house: House) -> None:
    """After a reload that has switched it off, or that wants one worker only."""
    last, _ = house.worker(1, hands_over=True), house.worker(2, hands_over=False)
    with house.waits() as one, house.waits() as two:
        house.processes.remove(last)
        assert is_answered(one)
        assert is_answered(two)
    assert house.log == ["Requests rejected with 503 because no worker was running: 2"]


def test_where_nothing_waits_nothing_is_said(house: House) -> None:
    house.processes.turn_away()
    assert house.log == []


def test_where_there_is_no_channel_there_is_nothing_to_answer() -> None:
    house = House(None)
    one, _ = house.worker(1, hands_over=True), house.worker(2, hands_over=False)
    house.processes.remove(one)
    house.processes.turn_away()
    assert house.log == []


def test_what_a_worker_said_last_is_heard_before_it_is_buried(house: House) -> None:
    """The loop may see the end of a worker in the same turn in which its last message came."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, encode(BootFailed(3, "no module")))
        os._exit(3)
    os.close(writer)
    handle = house.worker(1, hands_over=True)
    handle.pid, handle.messages, handle.open = pid, reader, True
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    generation = SimpleNamespace(log=house.log, config=SimpleNamespace(child_exit=lambda server, worker: None))
    server = house.processes.server
    parts: Any = SimpleNamespace(processes=house.processes, generation=generation, server=server)
    effects: Any = SimpleNamespace(events=deque())
    control: Any = SimpleNamespace(inquiries=None)
    turn = Loop(parts, effects, control, [], State(1, QUIET), SimpleNamespace(reader=-1, ring=None))  # type: ignore[arg-type]
    effects.events.clear()
    turn._reap()
    assert list(effects.events) == [Told(1, BootFailed(3, "no module")), ChildExited(1, 3, ())]
    assert not handle.open


def test_nobody_counts_on_a_worker_that_is_buried(house: House) -> None:
    handle = house.worker(1, hands_over=True)
    words = house.pages.page(handle.page).cast("Q")
    page.begin(words)
    words[page.FREE] = 4
    house.processes.remove(handle)
    assert words[page.FREE] == 0


def test_an_exception_in_a_new_worker_ends_it_and_reaches_nothing_of_the_arbiters() -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with only_worker(writer):
                raise RuntimeError("the address is gone")
        finally:
            os._exit(99)  # the arbiter's clean-up would be here
    os.close(writer)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == ExitCode.WORKER_BOOT
    told = Decoder().feed(os.read(reader, 4096))
    os.close(reader)
    assert told == [BootFailed(ExitCode.WORKER_BOOT, "RuntimeError: the address is gone")]


def test_of_many_requests_the_oldest_are_named_and_the_others_counted() -> None:
    house = House(None)
    handle = house.worker(1, hands_over=True)
    words = house.pages.page(handle.page).cast("Q")
    page.begin(words, entries=30)
    now = time.monotonic_ns()
    for slot in range(25):
        page.put(words, slot, now - slot * 10**9, f"GET /{slot:02}".encode())
    serving = _serving(handle)
    assert [text.split(" (")[0] for text in serving[:-1]] == [f"GET /{slot}" for slot in range(24, 14, -1)]
    assert serving[-1] == "and 15 more"
