"""Calls that take too long, seen from outside: a core in a process of its own, and the test in the arbiter's place."""

from __future__ import annotations

import json
import mmap
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tricorn import _core
from tricorn._core import RunningRequest, Scoreboard, Snapshot
from tricorn.config.resolve import resolve
from tricorn.workers import registry, watch
from tricorn.workers.core_options import core_options
from tricorn.workers.messages import Decoder, Message, Retire, Stuck

from tests import harness
from tests.harness import Wire, until
from tests.harness.server import Lines
from tests.harness.wire import Reply, request

pytestmark = pytest.mark.skipif(watch.STACK_SIGNAL is None, reason="no realtime signals here")

PROGRAM = Path(harness.__file__).with_name("core_process.py")
CLASSES = ("sync", "gthread")
M = TypeVar("M", bound=Message)


class Process:
    """The process, and the arbiter's ends of what it shares with it."""

    def __init__(self, alias: str, **options: Any) -> None:
        size = _core.scoreboard_bytes(int(options.get("threads", 1)))
        memory = os.memfd_create("scoreboard")
        os.truncate(memory, size)
        self.page = mmap.mmap(memory, size)
        self.pipe, messages = os.pipe()
        os.set_blocking(self.pipe, False)
        self.decoder = Decoder()
        self.heard: list[Message] = []
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = listener.getsockname()
        fds = {"listener": listener.fileno(), "messages": messages, "page": memory}
        given = {"class": alias, "options": options, **fds}
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, json.dumps(given)],
            pass_fds=tuple(fds.values()),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        listener.close()
        os.close(messages)
        os.close(memory)
        assert self.process.stdout is not None
        self.out = Lines(self.process.stdout)
        until(lambda: Scoreboard(self.page).read(), "the process starts")
        until(lambda: self.snapshot().state == "serving", "it serves")

    def snapshot(self) -> Snapshot:
        return until(lambda: Scoreboard(self.page).read(), "the page is begun")

    def requests(self) -> list[RunningRequest]:
        return Scoreboard(self.page).requests()

    def connect(self) -> Wire:
        return Wire(self.address)

    def get(self, target: str) -> Reply:
        with self.connect() as wire:
            return wire.get(target)

    def ask(self, target: str) -> Wire:
        """A request whose answer is for later; it is with the application, or waits behind one that is."""
        wire = self.connect()
        wire.send(request("GET", target))
        return wire

    def listen(self) -> list[Message]:
        """All messages so far."""
        try:
            while data := os.read(self.pipe, 65536):
                self.heard += self.decoder.feed(data)
        except BlockingIOError:
            pass
        return self.heard

    def hear(self, kind: type[M], count: int = 1) -> list[M]:
        def found() -> list[M]:
            messages = [message for message in self.listen() if isinstance(message, kind)]
            return messages if len(messages) >= count else []

        return until(found, f"{count} of {kind.__name__}; heard {self.heard}, printed:\n{self.out.text}")

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(60)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(60)
        self.out.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        os.close(self.pipe)
        self.page.close()


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    made: list[Process] = []
    yield made
    for process in made:
        process.close()


@pytest.fixture
def start(processes: list[Process]) -> Any:
    def make(alias: str, **options: Any) -> Process:
        process = Process(alias, **options)
        processes.append(process)
        return process

    return make


# Over `timeout`: the arbiter is told.


@pytest.mark.parametrize(
    ("target", "function"), [("/sleep", "application"), ("/busy", "spin"), ("/held", "hold_the_gil")]
)
@pytest.mark.parametrize("alias", CLASSES)
def test_a_stuck_call_is_told_with_its_stack_whatever_it_is_stuck_in(
    start: Any, alias: str, target: str, function: str
) -> None:
    process = start(alias, timeout=0.3)
    assert process.get("/").status == 200
    with process.ask(f"{target}?1.5") as wire:
        (stuck,) = process.hear(Stuck)
        assert (stuck.limit, stuck.slot, stuck.request) == ("timeout", 0, f"GET {target}?1.5")
        assert 0.3 <= stuck.age < 1.4
        assert stuck.stack[0].startswith('File "')
        assert stuck.stack[0].endswith(f" in {function}"), stuck.stack
        # The arbiter alone does something about it.
        assert wire.reply().status == 200
    assert process.get("/").status == 200
    assert process.stop() == 0
    assert len(process.hear(Stuck)) == 1, "told once"


@pytest.mark.parametrize(("seconds", "is_told"), [(1, True), (4, False)])
def test_a_thread_that_gets_no_processor_has_more_time_to_tell_its_stack_and_not_for_ever(
    start: Any, seconds: int, is_told: bool
) -> None:
    process = start("sync", timeout=0.3)
    with process.ask(f"/deaf?{seconds}") as wire:
        (stuck,) = process.hear(Stuck)
        assert any(line.endswith(" in be_deaf") for line in stuck.stack) is is_told, stuck.stack
        assert process.requests(), "it was told while the call lasted"
        assert wire.reply().status == 200


def test_every_thread_that_is_stuck_is_told(start: Any) -> None:
    process = start("gthread", threads=4, timeout=0.3)
    wires = [process.ask("/sleep?2") for _ in range(4)]
    told = process.hear(Stuck, 4)
    assert sorted(stuck.slot for stuck in told) == [0, 1, 2, 3]
    assert all(len(stuck.stack) >= 2 for stuck in told), told
    for wire in wires:
        assert wire.reply().status == 200
        wire.close()


def test_an_arbiter_that_does_not_read_holds_up_nothing(start: Any) -> None:
    process = start("sync", timeout=0.2)
    full = 0
    writer = os.open(f"/proc/self/fd/{process.pipe}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while True:
            full += os.write(writer, b"x" * 4095 + b"\n")
    except BlockingIOError:
        pass
    assert process.get("/sleep?0.6").status == 200
    with process.ask("/sleep?1") as wire:
        until(lambda: process.requests() and process.requests()[0].age > 0.4, "it is over the limit")
        assert len(process.hear(Stuck)) >= 1, "told when there is room again"
        assert wire.reply().status == 200
    os.close(writer)
    assert process.stop() == 0


# Over `request_timeout`: the call is ended.


@pytest.mark.parametrize("target", ["/sleep", "/busy"])
def test_a_late_call_on_the_main_thread_is_ended_with_504(start: Any, target: str) -> None:
    process = start("sync", request_timeout=0.3)
    reply = process.get(f"{target}?30")
    assert (reply.status, reply.closes) == (504, True)
    assert process.get("/").status == 200
    (stuck,) = process.hear(Stuck)
    assert (stuck.limit, stuck.request) == ("request_timeout", f"GET {target}?30")
    assert stuck.stack
    assert process.stop() == 0
    process.out.join()
    error, served = process.out.lines
    assert error.startswith(f"Error handling request GET {target}: exceeded request_timeout (0.3 s) | ")
    assert error.endswith(": the request takes longer than request_timeout allows (0.3 s)")
    assert served == "served"


def test_a_late_call_on_another_thread_is_ended_with_504(start: Any) -> None:
    process = start("gthread", threads=2, request_timeout=0.3)
    wires = [process.ask("/busy?30") for _ in range(2)]
    assert [wire.reply().status for wire in wires] == [504, 504]
    assert process.get("/").status == 200
    process.hear(Stuck, 2)
    until(lambda: process.snapshot().statuses[4] == 2, "both are counted")
    assert process.stop() == 0
    for wire in wires:
        wire.close()


@pytest.mark.parametrize(
    ("alias", "target"), [("sync", "/stubborn"), ("gthread", "/stubborn"), ("gthread", "/sleep"), ("sync", "/held")]
)
def test_a_call_that_does_not_end_is_answered_in_its_place(start: Any, alias: str, target: str) -> None:
    process = start(alias, request_timeout=0.3)
    with process.ask(f"{target}?3") as wire:
        reply = wire.reply()
        assert (reply.status, reply.closes) == (504, True)
        assert 1.2 <= process.requests()[0].age < 3
        wire.closed()
        with process.ask("/") as next_one:
            assert next_one.reply().status == 200, "the call ends some time, and the next one is served"
    until(lambda: process.snapshot().figures["requests"] == 2, "both are counted")
    assert process.snapshot().statuses == (0, 1, 0, 0, 1), "what the client got counts"
    assert process.snapshot().figures["client_gone"] == 0
    assert process.stop() == 0


def test_an_interim_response_is_no_answer(start: Any) -> None:
    process = start("sync", request_timeout=0.2)
    with process.ask("/hint?3") as wire:
        reply = wire.reply()
        assert reply.status == 504
        assert [interim.status for interim in reply.interims] == [103]


@pytest.mark.parametrize("alias", CLASSES)
def test_a_stream_that_is_late_is_broken_off(start: Any, alias: str) -> None:
    process = start(alias, request_timeout=0.3)
    with process.ask("/stream?30") as wire:
        data = wire.ended()
    assert data.startswith(b"HTTP/1.1 200 OK\r\n")
    assert data.endswith(b"begun\r\n"), "no last chunk"
    assert process.get("/").status == 200


@pytest.mark.parametrize("target", ["/flood", "/list"])
@pytest.mark.parametrize("alias", CLASSES)
def test_a_call_that_waits_for_its_client_ends_as_well(start: Any, alias: str, target: str) -> None:
    process = start(alias, request_timeout=0.5, write_timeout=3600)
    wire = Wire(process.address, receive_buffer=4096)
    wire.send(request("GET", target))
    until(process.requests, "it runs")
    assert process.get("/").status == 200, "the thread is free again"
    wire.close()


@pytest.mark.parametrize("alias", CLASSES)
def test_the_exception_never_meets_another_request(start: Any, alias: str) -> None:
    # Calls that end when the limit is reached: the exception is on its way while the next request begins.
    process = start(alias, threads=1 if alias == "sync" else 2, request_timeout=0.02)

    def client(number: int) -> list[tuple[str, int]]:
        got = []
        for step in range(60):
            nr = number * 60 + step
            for target in (f"/busy/{nr}?{0.0195 + nr % 100 / 100_000}", f"/now/{nr}"):
                got.append((target, process.get(target).status))
        return got

    with ThreadPoolExecutor(2) as pool:
        got = [each for results in pool.map(client, range(2)) for each in results]
    assert {status for _, status in got} == {200, 504}
    assert process.stop() == 0
    process.out.join()
    *errors, served = process.out.lines
    assert served == "served"
    told = [re.fullmatch(r".* \| RequestTimeout at ([0-9.]+) s: .*", line) for line in errors]
    assert all(told), "\n".join(errors)
    ages = [float(match[1]) for match in told if match]
    assert len(ages) == sum(status == 504 for _, status in got)
    assert min(ages) >= 0.02, "raised in a call that was not late"


def test_what_the_application_raises_itself_is_answered_alike(start: Any) -> None:
    process = start("sync")
    assert process.get("/raises?1").status == 504


# Orders


@pytest.mark.parametrize("alias", CLASSES)
def test_a_worker_whose_python_is_stuck_drains_and_turns_away_what_waits(start: Any, alias: str) -> None:
    process = start(alias, timeout=0.4)
    stuck = process.ask("/held?20")
    until(process.requests, "it runs")
    waiting = process.ask("/")
    until(lambda: process.snapshot().figures["queued"] == 1, "one request waits")
    Scoreboard(process.page).order(drain=True)
    process.process.send_signal(signal.SIGTERM)
    until(lambda: process.snapshot().state == "draining", "it drains")
    reply = waiting.reply()
    assert (reply.status, reply.closes) == (503, True)
    assert reply.get("retry-after") == "1"
    with pytest.raises(ConnectionRefusedError):
        until(lambda: process.connect().close(), "the address refuses connections")
    stuck.close()
    waiting.close()


def test_an_idle_worker_drains_by_order(start: Any) -> None:
    process = start("gthread", threads=2)
    assert process.get("/").status == 200
    Scoreboard(process.page).order(drain=True)
    process.process.send_signal(signal.SIGTERM)
    assert process.process.wait(60) == 0


def test_clients_connect_anew_while_it_is_ordered_and_no_response_is_lost(start: Any) -> None:
    process = start("gthread", threads=2)
    with Wire(process.address) as wire:
        assert not wire.get("/").closes
        Scoreboard(process.page).order(reconnect=True)
        reply = wire.get("/")
        assert (reply.status, reply.closes) == (200, True)
    assert process.get("/").closes
    Scoreboard(process.page).order()
    assert not process.get("/").closes


# max_requests


def test_the_arbiter_is_told_once_when_a_worker_has_served_enough(start: Any) -> None:
    process = start("sync", max_requests=5)
    for _ in range(4):
        assert process.get("/").status == 200
    assert process.listen() == []
    assert process.get("/").status == 200
    assert process.hear(Retire) == [Retire("max_requests")]
    for _ in range(5):
        assert process.get("/sleep?0.02").status == 200, "it serves on until it is told to drain"
    assert process.stop() == 0
    assert process.listen() == [Retire("max_requests")]


# The table of running requests


def test_the_page_of_a_killed_worker_names_what_it_was_doing(start: Any) -> None:
    process = start("gthread", threads=3)
    with process.ask("/sleep?30&a=%C3%A9"), process.ask("/busy?30"):
        until(lambda: len(process.requests()) == 2, "two run")
        process.process.kill()
        process.process.wait(60)
        running = process.requests()
        assert sorted(request.text for request in running) == ["GET /busy?30", "GET /sleep?30&a=%C3%A9"]
        assert all(0 < request.age < 60 for request in running)


def test_what_is_read_while_it_is_written_is_whole(start: Any) -> None:
    process = start("sync")
    texts = {f"GET /{letter * length}": None for letter in "abcdef" for length in (1, 30, 99)}
    stop = threading.Event()

    def hammer() -> None:
        with process.connect() as wire:
            while not stop.is_set():
                for text in texts:
                    assert wire.get(text.removeprefix("GET ")).status == 200

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(hammer)
        seen: set[str] = set()
        try:
            until(
                lambda: seen.update(each.text for each in process.requests()) or len(seen) > 8,
                "requests",
                within=60,
                every=0.0001,  # so that the other thread gets its turn
            )
        finally:
            stop.set()
        working.result()
    assert seen <= set(texts)


# Options


def core(**options: Any) -> _core.Core:
    page = mmap.mmap(-1, _core.scoreboard_bytes(1))
    return _core.Core([], core_options(resolve([]), registry.load("sync"), siblings=False) | options, page)


def test_every_limit_may_be_left_out() -> None:
    made = core()
    assert made.request_timeout == 0
    assert made.late_call() is None
    made.close()


def test_a_pipe_that_is_none_is_refused_by_its_number() -> None:
    with pytest.raises(OSError, match="core option messages: descriptor 987654"):
        core(messages=987654)
    core(messages=-1).close()


def test_a_page_that_is_too_small_for_the_threads_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 8192 bytes"):
        core(threads=5)
