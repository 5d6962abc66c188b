"""More requests than can be served: which wait, for how long, which are refused, and that none is left hanging."""

from __future__ import annotations

import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.apps.counted import MEET
from tests.harness import KINDS, Server, Site, Wire, at_once, configured, each, until
from tests.harness.classes import EVENT_LOOPS, SERVERS_OF_CLASSES
from tests.harness.core import Serving, serving
from tests.harness.deadline import PATIENCE
from tests.harness.group import Group
from tests.harness.marked import calls
from tests.harness.wire import Reply, request

pytestmark = pytest.mark.beyond_reference("there requests wait without a limit")

QUEUED, QUEUE_FULL, QUEUE_LATE, LEFT_QUEUE, STATUS_5XX = 10, 42, 43, 44, 36
"""Words of the scoreboard."""

THREADS = pytest.mark.parametrize("threads", [1, 2])


class App:
    """Notes every path; `/held…` stays until `gate` is set."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.gate = threading.Event()
        self.held = threading.Semaphore(0)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        self.called.append(path)
        if path.startswith("/held"):
            self.held.release()
            self.gate.wait(30)
        body = environ["wsgi.input"].read()
        text = f"{path} {len(body)}".encode()
        start_response("200 OK", [("Content-Length", str(len(text)))])
        return [text]


class Busy:
    """A core whose every app thread is in the application."""

    def __init__(self, core: Serving, app: App, wires: list[Wire]) -> None:
        self.core = core
        self.app = app
        self.wires = wires
        self.asked: list[Wire] = []

    def ask(self, path: str, method: str = "GET", *fields: tuple[str, str], body: bytes | None = None) -> Wire:
        """A connection with a request that is waiting, or was turned away."""
        wire = self.core.wire()
        self.asked.append(wire)
        return wire.send(request(method, path, fields, body))

    def waiting(self, path: str, *fields: tuple[str, str]) -> Wire:
        before = self.core.word(QUEUED)
        wire = self.ask(path, "GET", *fields)
        until(lambda: self.core.word(QUEUED) == before + 1, "it waits")
        return wire

    def end(self) -> None:
        self.app.gate.set()
        for wire in self.wires:
            with suppress(OSError):
                assert wire.reply().status == 200


@contextmanager
def busy(threads: int = 1, **options: Any) -> Iterator[Busy]:
    app = App()
    with serving(app, threads=threads, **{"keepalive": 60.0} | options) as core:
        wires = [core.wire().send(request("GET", f"/held{nr}")) for nr in range(threads)]
        state = Busy(core, app, wires)
        try:
            for _ in wires:
                assert app.held.acquire(timeout=PATIENCE)
            yield state
        finally:
            app.gate.set()
            for wire in [*wires, *state.asked]:
                wire.close()


def is_turned_away(reply: Reply) -> bool:
    assert reply.status in (200, 503), reply
    if reply.status == 503:
        assert reply.get("Retry-After") == "1"
        assert reply.get("Tricorn-Refused") == "queue"
        assert reply.get("Date"), "RFC 9110 section 6.6.1"
    return reply.status == 503


@THREADS
@pytest.mark.parametrize("limit", [1, 3])
def test_one_more_than_may_wait_is_turned_away(threads: int, limit: int) -> None:
    with busy(threads, queue_limit=limit) as state:
        waiting = [state.waiting(f"/waits{nr}") for nr in range(limit)]
        for nr in range(5):
            wire = state.ask(f"/more{nr}")
            reply = wire.reply()
            assert is_turned_away(reply)
            assert not reply.closes
        until(lambda: state.core.word(QUEUE_FULL) == state.core.word(STATUS_5XX) == 5, "they are counted")
        assert all(wire.still_open() and not wire.unread for wire in waiting)
        state.end()
        assert [wire.reply().text for wire in waiting] == [f"/waits{nr} 0" for nr in range(limit)]
        # The connections were kept, and now there is a thread for them.
        assert [wire.get("/again").text for wire in state.asked] == ["/again 0"] * len(state.asked)
    assert not [path for path in state.app.called if path.startswith("/more")]


def test_without_a_limit_all_wait() -> None:
    with busy(queue_limit=0, worker_connections=10_000) as state:
        wires = [state.ask("/waits") for _ in range(200)]
        until(lambda: state.core.word(QUEUED) == 200, "all wait")
        state.end()
        assert [wire.reply().status for wire in wires] == [200] * 200


def test_what_was_turned_away_is_an_answer_like_any_other() -> None:
    """HEAD has no body, a body is read, `Connection: close` is obeyed, and pipelined requests are answered in turn."""
    with busy(queue_limit=1) as state:
        state.waiting("/waits")
        wire = state.ask("/head", "HEAD")
        reply = wire.reply("HEAD")
        assert is_turned_away(reply)
        assert int(reply.get("Content-Length") or 0) > 0
        assert not wire.unread
        assert is_turned_away(wire.get("/after"))
        assert is_turned_away(wire.ask("POST", "/body", (), b"x" * 300_000))
        assert is_turned_away(wire.ask("POST", "/body", [("Transfer-Encoding", "chunked")], b"5\r\nhello\r\n0\r\n\r\n"))
        wire.send(*(request("GET", f"/pipelined{nr}") for nr in range(10)))
        assert all(is_turned_away(wire.reply()) for _ in range(10))
        reply = wire.get("/last", ("Connection", "close"))
        assert is_turned_away(reply)
        assert reply.closes
        wire.closed()
        wire = state.ask("/old", "GET", ("Host", "t"))
        assert is_turned_away(wire.reply())
        wire.send(b"GET /old HTTP/1.0\r\n\r\n")
        reply = wire.reply()
        assert is_turned_away(reply)
        assert reply.closes
        wire.closed()


@THREADS
def test_a_request_that_has_waited_too_long_is_not_run(threads: int) -> None:
    with busy(threads, queue_timeout=0.3) as state:
        began = time.monotonic()
        wires = [state.waiting(f"/late{nr}") for nr in range(3)]
        for wire in wires:
            assert is_turned_away(wire.reply())
        assert time.monotonic() - began >= 0.29
        until(lambda: state.core.word(QUEUE_LATE) == 3, "they are counted")
        until(lambda: state.core.word(QUEUED) == 0, "no request waits")
        state.end()
        assert [wire.get("/again").status for wire in wires] == [200] * 3
    assert not [path for path in state.app.called if path.startswith("/late")]


def test_each_waits_for_a_time_of_its_own() -> None:
    with busy(queue_timeout=0.6) as state:
        first = state.waiting("/first")
        assert first.still_open(0.3)
        second = state.waiting("/second")
        assert is_turned_away(first.reply())
        assert second.still_open(0.05)
        assert not second.unread
        assert is_turned_away(second.reply())


@pytest.mark.parametrize("worker_class", each(*EVENT_LOOPS, *SERVERS_OF_CLASSES))
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_request_turned_away_before_its_body_came_is_answered_once(
    tmp_path: Path, worker_class: str, framing: str
) -> None:
    """These classes queue a request when its head is there. What comes later of its body is not a next request."""
    gate = tmp_path / "gate"
    options: dict[str, Any] = {"worker_connections": 1, "queue_limit": 1, "keep_alive": 30}
    fields, rest = {
        "length": ([("Content-Length", "10")], b"0123456789"),
        "chunked": ([("Transfer-Encoding", "chunked")], b"a\r\n0123456789\r\n0\r\n\r\n"),
    }[framing]
    with ExitStack() as stack:
        server = stack.enter_context(Server(worker_class=worker_class, **options))
        runs, *others = (stack.enter_context(server.connect()) for _ in range(3))
        runs.send(request("GET", f"/gate?open={gate}"))
        until(lambda: list(tmp_path.glob("gate.in.*")), "the call runs")
        for wire in others:
            wire.send(request("POST", "/body", [*fields, ("Content-Type", "a/b")]))
        # One of them may wait.
        (answered, *_), _, _ = select.select([wire.sock for wire in others], [], [], 20)
        beyond, waits = sorted(others, key=lambda wire: wire.sock is not answered)
        reply = beyond.reply()
        assert is_turned_away(reply)
        assert reply.closes
        with suppress(OSError):
            beyond.send(rest)
        beyond.closed()
        waits.send(rest)
        gate.touch()
        assert runs.reply().status == 200
        assert waits.reply().json()["length"] == 10


class TestRequestStart:
    def test_what_was_waited_in_front_counts(self) -> None:
        """That one was due before the other came."""
        with busy(queue_timeout=5.0) as state:
            patient = state.waiting("/patient")
            hasty = state.waiting("/hasty", ("X-Request-Start", f"t={time.time() - 4.5:.6f}"))
            assert is_turned_away(hasty.reply())
            assert patient.still_open()
            assert not patient.unread
            state.end()
            assert patient.reply().status == 200
        assert "/hasty" not in state.app.called

    def test_it_may_be_too_late_on_arrival(self) -> None:
        app = App()
        with serving(app, queue_timeout=5.0) as core, core.wire() as wire:
            assert is_turned_away(wire.get("/late", ("X-Request-Start", f"t={time.time() - 6:.6f}")))
            assert wire.get("/timely", ("X-Request-Start", f"t={time.time() - 1:.6f}")).status == 200
            assert app.called == ["/timely"]
            until(lambda: core.word(QUEUE_LATE) == 1, "it is counted")

    def test_a_stranger_is_not_believed(self) -> None:
        app = App()
        with serving(app, queue_timeout=5.0, forwarded_allow_ips="192.0.2.1") as core, core.wire() as wire:
            assert wire.get("/", ("X-Request-Start", f"t={time.time() - 60:.6f}")).status == 200

    def test_without_a_limit_it_is_no_matter(self) -> None:
        with serving(App(), queue_timeout=0.0) as core, core.wire() as wire:
            assert wire.get("/", ("X-Request-Start", f"t={time.time() - 1000:.6f}")).status == 200


LEAVE: dict[str, Callable[[Wire], Any]] = {
    "closes": Wire.close,
    "resets": Wire.reset,
    "says_it_is_done": Wire.finish_sending,
}


@THREADS
@pytest.mark.parametrize("how", LEAVE)
def test_a_client_that_left_is_not_served(how: str, threads: int) -> None:
    with busy(threads) as state:
        leaving, stays = state.waiting("/leaves"), state.waiting("/stays")
        assert leaving.still_open(0.1)  # so that it does not end together with its request
        LEAVE[how](leaving)
        until(lambda: state.core.word(LEFT_QUEUE) == 1, "it is noticed")
        until(lambda: state.core.word(QUEUED) == 1, "the other one waits")
        state.end()
        assert stays.reply().text == "/stays 0"
    assert "/leaves" not in state.app.called


def test_a_client_that_ends_its_side_with_its_request_is_served() -> None:
    with busy() as state:
        wire = state.core.wire()
        state.asked.append(wire)
        wire.send(request("GET", "/half")).finish_sending()
        until(lambda: state.core.word(QUEUED) == 1, "it waits")
        # For longer than the end of a side is taken for a part of the request.
        assert wire.still_open(0.2)
        assert not wire.unread
        state.end()
        assert wire.reply().text == "/half 0"
        wire.closed()


def test_clients_that_left_make_room() -> None:
    with busy(queue_limit=2) as state:
        first, second = state.waiting("/first"), state.waiting("/second")
        assert is_turned_away(state.ask("/third").reply())
        assert first.still_open(0.1)
        first.close()
        until(lambda: state.core.word(LEFT_QUEUE) == 1, "it is noticed")
        fourth = state.waiting("/fourth")
        state.end()
        assert [second.reply().text, fourth.reply().text] == ["/second 0", "/fourth 0"]


class TestOrder:
    def waiting(self, state: Busy, names: str) -> list[Wire]:
        """Requests that come one after the other in a queue that stands, which is one not empty for 100 ms."""
        wires = []
        for name in names:
            wires.append(state.waiting(f"/{name}"))
            assert wires[-1].still_open(0.12)
        return wires

    @pytest.mark.parametrize(("order", "served"), [("fifo", "abc"), ("adaptive", "cba")])
    def test_who_is_served_next(self, order: str, served: str) -> None:
        with busy(queue_order=order) as state:
            wires = self.waiting(state, "abc")
            state.end()
            assert [wire.reply().status for wire in wires] == [200] * 3
        assert "".join(path[1:] for path in state.app.called[1:]) == served

    @pytest.mark.parametrize(("order", "goes"), [("fifo", 2), ("adaptive", 0)])
    def test_overload_rejects_the_request_that_would_be_served_last(self, order: str, goes: int) -> None:
        """The request that would be served last."""
        with busy(queue_order=order, queue_limit=2) as state:
            wires = [*self.waiting(state, "ab"), state.ask("/c")]
            assert is_turned_away(wires.pop(goes).reply())
            assert all(wire.still_open() and not wire.unread for wire in wires)
            state.end()
            assert [wire.reply().status for wire in wires] == [200] * 2


@THREADS
def test_a_client_that_left_while_its_request_was_between_two_workers_is_not_served(
    tmp_path: Path, threads: int
) -> None:
    with Group(tmp_path, threads=threads, keepalive=60.0) as group:
        first = group.start()
        wires = [group.wire() for _ in range(2 * threads + 1)]
        for wire in wires:
            assert wire.get("/").json()["pid"] == first.pid
        second = group.start()
        *holding, leaving = wires
        for nr, wire in enumerate(holding):
            wire.send(request("GET", f"/?id=hold{nr}&gate=1"))
            until(lambda nr=nr: group.served()[f"hold{nr}"], "it runs")
        leaving.send(request("GET", "/?id=leaves"))
        until(lambda: group.waiting() > 0, "the front of the queue is in the channel")
        assert leaving.still_open(0.1)
        leaving.close()
        group.open_gate(1)
        for wire in holding:
            assert wire.reply().status == 200
        until(lambda: group.waiting() == 0, "it is taken")
        until(lambda: group.figure(first, "left_queue") + group.figure(second, "left_queue") == 1, "it is noticed")
        assert group.served()["leaves"] == 0


def stuck(server: Site, tmp_path: Path, fields: str) -> Callable[[], None]:
    """Holds the interpreter's lock of the only worker until what is returned is called."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    wire = server.connect().send(request("GET", f"/c?{fields}&fifo={fifo}"))
    until(lambda: calls(tmp_path / "ledger")["stuck"], "the call has begun")

    def release() -> None:
        if fifo.exists():
            os.close(os.open(fifo, os.O_RDWR))
            fifo.unlink()
            assert wire.reply().status == 200
            wire.close()

    return release


def site(tmp_path: Path, worker_class: str, config: str, workers: int = 1) -> Site:
    config = f"{configured(worker_class, 2)}workers = {workers}\ntimeout = 60\nkeepalive = 60\n{MEET}{config}"
    return Site(config, app="counted:application", workers=workers, env={"LEDGER": str(tmp_path / "ledger")})


@KINDS
def test_python_is_not_needed_to_turn_somebody_away(tmp_path: Path, worker_class: str) -> None:
    """The only worker's interpreter is held in C code: limits, deadlines and clients that leave are looked after."""
    log = "accesslog = '-'\naccess_log_format = 'line %(U)s%(q)s %(s)s %(b)s %(queue_time)s'\n"
    with site(tmp_path, worker_class, f"queue_limit = 2\nqueue_timeout = 1\n{log}") as server:
        known = [server.connect() for _ in range(4)]
        for wire in known:
            assert wire.get("/").status == 200
        release = stuck(server, tmp_path, "id=stuck")
        try:
            began = time.monotonic()
            new = [server.connect() for _ in range(4)]
            for nr, wire in enumerate([*known, *new]):
                wire.send(request("GET", f"/?id=asked{nr}"))
            replies = [wire.reply() for wire in [*known, *new]]
            assert all(is_turned_away(reply) for reply in replies)
            assert time.monotonic() - began >= 0.9, "those that could wait have waited"
            assert is_turned_away(known[0].ask("HEAD", "/?id=asked8"))
            lines = server.out.wait(r"line /id=asked(\d) 503 (\d+) (\d+)", count=9)
            told = {int(line[1]): (int(line[2]), int(line[3])) for line in lines}
            assert {nr: told[nr][0] for nr in range(9)} == {nr: len(reply.body) for nr, reply in enumerate(replies)} | {
                8: 0
            }
            assert sum(waited >= 900_000 for _, waited in told.values()) == 3, (
                "two could wait, and when they were gone one more"
            )
        finally:
            release()
        called = calls(tmp_path / "ledger")
        assert not [id_ for id_ in called if id_.startswith("asked")]
        assert all(wire.get("/").status == 200 for wire in [*known, *new])
        for wire in [*known, *new]:
            wire.close()


@KINDS
def test_the_log_has_one_line_a_second(tmp_path: Path, worker_class: str) -> None:
    with site(tmp_path, worker_class, "queue_limit = 1\nqueue_timeout = 0\n") as server:
        began = time.monotonic()
        wires = [server.connect() for _ in range(20)]
        turned_away = 0
        while time.monotonic() - began < 1.2:  # what is measured
            for wire in wires:
                wire.send(request("GET", "/?s=0.005"))
            turned_away += sum(is_turned_away(wire.reply()) for wire in wires)
        took = time.monotonic() - began
        assert turned_away > 0

        def told() -> int:
            return sum(
                int(match[1])
                for match in server.log.matching(r"Overload: .*503: (\d+) because 1 requests were waiting")
            )

        until(
            lambda: server.get("/").status == 200 and told() == turned_away, f"all {turned_away} are told of", every=0.1
        )
        lines = server.log.matching("Overload")
        assert 1 <= len(lines) <= took + 3
        assert all("[WARNING]" in match.string for match in lines)
        for wire in wires:
            wire.close()


@KINDS
def test_new_connections_are_turned_away_too(tmp_path: Path, worker_class: str) -> None:
    """All workers are busy: connections are accepted all the same, and their requests answered at once."""
    workers, limit = 2, 2
    with site(tmp_path, worker_class, f"queue_limit = {limit}\n", workers) as server:
        threads = at_once(worker_class, 2)
        gate = tmp_path / "gate"
        holding = []
        for nr in range(workers * threads):
            holding.append(server.connect().send(request("GET", f"/?id=hold{nr}&gate={gate}")))
            until(lambda nr=nr: calls(tmp_path / "ledger")[f"hold{nr}"], "it runs")
        wires = [server.connect().send(request("GET", f"/?id=asked{nr}")) for nr in range(60)]
        # In each worker's queue, and in the channel between them.
        most = workers * limit + workers

        def answered() -> list[Wire]:
            return [wire for wire in wires if wire.unread or (wire.still_open(0.001) and wire.unread)]

        until(lambda: len(answered()) >= 60 - most, f"all but {most} are answered, and nothing has ended")
        gate.touch()
        turned_away = sum(is_turned_away(wire.reply()) for wire in wires)
        assert 60 - most <= turned_away < 60
        # It is over as soon as it is over.
        assert [wire.get("/?id=later").status for wire in wires] == [200] * 60
        assert all(wire.reply().status == 200 for wire in holding)
        called = calls(tmp_path / "ledger")
        assert sum(called[f"asked{nr}"] for nr in range(60)) == 60 - turned_away
        assert re.search(
            r"Overload", until(lambda: server.log.text if server.log.matching("Overload") else "", "it is told")
        )
        for wire in [*wires, *holding]:
            wire.close()
