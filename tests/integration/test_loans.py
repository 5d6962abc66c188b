"""Requests on loan: a connection of TLS or HTTP/2 stays with its worker, which is busy, and another one answers."""

from __future__ import annotations

import collections
import hashlib
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Site, Wire, configured, each, proc, until
from tests.harness.deadline import elapse
from tests.harness.http2 import Http2Wire
from tests.harness.http2_client import Http2Client
from tests.harness.marked import calls, ran
from tests.harness.scrape import Samples, scrape, value
from tests.harness.server import free_port
from tests.harness.transports import HTTP_2, LENDING, TLS, Transport, is_cut_off
from tests.harness.wire import Reply, request

pytestmark = pytest.mark.beyond_reference("there a request waits for the worker that has its connection")

CLASSES = pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent", "asgi"))
MIB = 1 << 20
LINK = "</a.css>; rel=preload"
CONFIG = """
workers = 2
keepalive = 60
timeout = 60
graceful_timeout = 30
accesslog = "access"
access_log_format = "%(p)s %(h)s %(m)s %(U)s %(s)s %(B)s"
"""


class Held:
    """A request that keeps a worker busy until it is let go."""

    def __init__(self, wire: Wire, gate: Path, pid: int) -> None:
        self.wire = wire
        self.gate = gate
        self.pid = pid

    def release(self) -> None:
        self.gate.touch()
        assert self.wire.reply().status == 200
        self.wire.close()


class Loans:
    """`wire` is a connection of a busy worker, the `lender`; the `borrower` is idle."""

    def __init__(self, server: Site, transport: Transport, admin: int, directory: Path) -> None:
        self.server = server
        self.transport = transport
        self.directory = directory
        self.ledger = directory / "ledger"
        self._admin = ("127.0.0.1", admin)
        self._wires = ExitStack()
        self._gates = 0
        until(self._arrange, "an idle worker and a busy one that has a connection", every=0)
        self.before = self.metric("requests_lent_total")

    def _arrange(self) -> bool:
        """Not if a worker was slow: then its requests are answered by the other one, or its connections are there."""
        before = self.metric("requests_lent_total")
        first = self.hold()
        self.wire = self._wires.enter_context(self.server.connect())
        self.lender = answerer(self.wire.get("/facts"))
        self.busy = self.hold()
        first.release()
        self.borrower = first.pid
        is_so = {self.busy.pid} == {self.lender} != {self.borrower}
        if is_so and self.metric("requests_lent_total") == before:
            return True
        self.busy.release()
        self.wire.close()
        return False

    def hold(self) -> Held:
        self._gates += 1
        gate = self.directory / f"gate{self._gates}"
        wire = self._wires.enter_context(self.server.connect())
        wire.send(request("GET", f"/facts?id={gate.name}&gate={gate}"))
        return Held(wire, gate, self.runs(gate.name))

    def runs(self, id_: str) -> int:
        """Who answers this request, once it does."""
        return until(lambda: ran(self.ledger, id_), f"{id_} is in the application")

    def metrics(self) -> Samples:
        return scrape(self._admin)

    def metric(self, name: str, **labels: str) -> float:
        return value(self.metrics(), name, **labels)

    def is_lent(self, count: int) -> None:
        """So many requests were."""
        assert self.metric("requests_lent_total") - self.before == count

    def is_over(self) -> None:
        """Nothing is left of any loan: in the channel, on the borrower's side, or on the lender's."""
        until(lambda: self.metric("connections") == self.kept(), f"{self.kept()} connections are left")
        samples = self.metrics()
        assert value(samples, "requests_running") == 0

    def kept(self) -> int:
        return 1

    def close(self) -> None:
        for path in self.directory.glob("gate*"):
            path.touch()
        (self.directory / f"gate{self._gates}").touch()
        self._wires.close()


@contextmanager
def lending(tmp_path: Path, transport: Transport, worker_class: str, more: str = "", **options: Any) -> Iterator[Loans]:
    admin = free_port()
    lines = f"{configured(worker_class, 1)}{CONFIG}{transport.lines}admin_bind = '127.0.0.1:{admin}'\n"
    lines = lines.replace('"access"', repr(str(tmp_path / "access")))
    environment = {"LEDGER": str(tmp_path / "ledger")}
    with Site(lines + more, app="lent:application", workers=2, env=environment, **options) as server:
        server.wire_type = transport.connect
        loans = Loans(server, transport, admin, tmp_path)
        try:
            yield loans
        finally:
            loans.close()


def answerer(reply: Reply) -> int:
    return int(reply.get("X-Pid") or 0)


def by(loans: Loans, reply: Reply) -> Any:
    """What the borrower has answered."""
    assert (reply.status, answerer(reply)) == (200, loans.borrower), reply
    return reply.json() if reply.get("Content-Type") == "application/json" else reply.body


def received(told: Any, body: bytes) -> bool:
    return bool((told["length"], told["sha256"]) == (len(body), hashlib.sha256(body).hexdigest()))


@CLASSES
@LENDING
def test_the_idle_worker_answers_as_the_busy_one_would(tmp_path: Path, transport: Transport, worker_class: str) -> None:
    fields = [("Cookie", "a=b; c=d"), ("X-Twice", "1"), ("X-Twice", "2")]
    with lending(tmp_path, transport, worker_class) as loans:
        lent = [by(loans, loans.wire.ask("GET", "/facts?a=%20b", fields)) for _ in range(3)]
        assert lent[0] == lent[1] == lent[2]
        for body in (b"", b"short", os.urandom(100_000)):
            assert received(by(loans, loans.wire.ask("POST", "/facts", (), body)), body)
        head = loans.wire.ask("HEAD", "/facts")
        assert (head.status, head.body, answerer(head)) == (200, b"", loans.borrower)
        assert int(head.get("Content-Length") or 0) > 0
        loans.is_lent(7)
        loans.busy.release()
        own = loans.wire.ask("GET", "/facts?a=%20b", fields)
        assert (answerer(own), own.json()) == (loans.lender, lent[0])
        loans.is_lent(7)
        loans.is_over()


@CLASSES
def test_streams_are_lent_side_by_side(tmp_path: Path, worker_class: str) -> None:
    count = 20
    with lending(tmp_path, HTTP_2, worker_class) as loans:
        wire = session(loans.wire)
        streams = [wire.begin("GET", f"/facts?id=s{number}") for number in range(count)]
        answers = [wire.answer(stream) for stream in streams]
        assert {(answer.status, answer.fields["x-pid"]) for answer in answers} == {(200, str(loans.borrower))}
        assert {calls(loans.ledger)[f"s{number}"] for number in range(count)} == {1}
        loans.is_lent(count)
        loans.busy.release()
        loans.is_over()


def session(wire: Wire) -> Http2Wire:
    assert isinstance(wire, Http2Client)
    return wire.session


@CLASSES
@LENDING
def test_interim_responses_and_files(tmp_path: Path, transport: Transport, worker_class: str) -> None:
    content = os.urandom(3 * MIB)
    path = tmp_path / "large"
    path.write_bytes(content)
    with lending(tmp_path, transport, worker_class) as loans:
        reply = loans.wire.get("/hints")
        by(loans, reply)
        assert [(interim.status, interim.get("Link")) for interim in reply.interims] == [(103, LINK)]
        for method, expected in (("GET", content), ("HEAD", b"")):
            reply = loans.wire.ask(method, f"/file?path={path}")
            assert by(loans, reply) == expected
            assert reply.get("Content-Length") == str(len(content))
        loans.is_lent(3)


@LENDING
def test_trailers(tmp_path: Path, transport: Transport) -> None:
    with lending(tmp_path, transport, "asgi") as loans:
        if transport is TLS:
            loans.wire.send(request("GET", "/trailers", [("TE", "trailers")]))
            text = b""
            while not text.endswith(b"\r\n\r\n") or b"\r\n0\r\n" not in text:
                text += loans.wire.sock.recv(65_536)
            assert text.endswith(b"4\r\ndone\r\n0\r\nx-sum: 9\r\n\r\n")
        else:
            answer = session(loans.wire).get("/trailers", ("te", "trailers"))
            assert (answer.body, answer.trailers) == (b"done", {"x-sum": "9"})
        assert loans.wire.get("/facts").status == 200, "its end was found"
        loans.is_lent(2)


PIECES, PIECE = 512, 65_536
ALL = PIECES * PIECE


@CLASSES
@LENDING
def test_a_slow_client_holds_up_the_call_that_answers_it(
    tmp_path: Path, transport: Transport, worker_class: str
) -> None:
    with lending(tmp_path, transport, worker_class, "response_buffering = False\n") as loans:
        seen = tmp_path / "progress"
        target = f"/stream?id=slow&count={PIECES}&size={PIECE}&progress={seen}"
        loans.wire.send(request("GET", target))
        if transport is HTTP_2:
            session(loans.wire).unread.add(1 + 2 * 1)
        assert loans.runs("slow") == loans.borrower
        made = 0
        while (now := pieces(seen)) != made or made == 0:
            made = now
            elapse(0.5)
        assert made < PIECES // 2, "32 MiB are more than any buffer takes"
        body = slowly_read(loans.wire) if transport is HTTP_2 else loans.wire.reply().body
        assert len(body) == ALL
        assert hashlib.sha256(body).digest() == digest()
        assert pieces(seen) == PIECES
        loans.is_lent(1)


def pieces(seen: Path) -> int:
    return seen.stat().st_size if seen.exists() else 0


def digest() -> bytes:
    found = hashlib.sha256()
    for number in range(PIECES):
        found.update(bytes([97 + number % 26]) * PIECE)
    return found.digest()


def slowly_read(wire: Wire) -> bytes:
    """The only stream that is under way; its window was shut."""
    own = session(wire)
    (stream,) = own.unread
    own.unread.clear()
    taken = sum(map(len, own.answers[stream].pieces))
    own.client.increment_flow_control_window(max(taken, 1), stream)
    own.flush()
    return own.answer(stream).body


@CLASSES
@LENDING
def test_uploads(tmp_path: Path, transport: Transport, worker_class: str) -> None:
    """What goes to disk goes as its file; what an event loop reads piece by piece is with its own worker."""
    small, large = os.urandom(MIB), os.urandom(5 * MIB)
    with lending(tmp_path, transport, worker_class) as loans:
        assert received(by(loans, loans.wire.ask("POST", "/facts", (), small)), small)
        if worker_class != "asgi":
            assert received(by(loans, loans.wire.ask("POST", "/facts", (), large)), large)
            loans.is_lent(2)


@LENDING
def test_a_body_that_comes_late_is_lent_with_its_request(tmp_path: Path, transport: Transport) -> None:
    body = os.urandom(50_000)
    with lending(tmp_path, transport, "asgi") as loans:
        loans.wire.send(request("POST", "/facts?id=late", (("Content-Length", str(len(body))),)), body[:100])
        until(lambda: loans.metric("requests_waiting") == 1, "it waits without its body")
        loans.is_lent(0)
        loans.wire.send(body[100:])
        assert received(by(loans, loans.wire.reply()), body)
        loans.is_lent(1)


@CLASSES
@LENDING
def test_a_client_that_leaves_ends_the_call_that_answers_it(
    tmp_path: Path, transport: Transport, worker_class: str
) -> None:
    with lending(tmp_path, transport, worker_class) as loans:
        begin_to_last(loans)
        if transport is HTTP_2:
            own = session(loans.wire)
            own.client.reset_stream(3, 8)
            own.flush()
        else:
            loans.wire.close()
        until(lambda: ran(loans.ledger, "lasts.over") == loans.borrower, "the call ends")
        if transport is HTTP_2:
            answer = session(loans.wire).get("/facts")
            assert answer.fields["x-pid"] == str(loans.borrower), "it was a stream alone"


def begin_to_last(loans: Loans) -> None:
    """A lent request whose response has begun, and goes on until the client leaves or there is a file `end`."""
    loans.wire.send(request("GET", f"/lasts?id=lasts&end={loans.directory / 'end'}"))
    loans.wire.wait_begun()
    assert loans.runs("lasts") == loans.borrower
    loans.is_lent(1)


@CLASSES
@LENDING
def test_a_borrower_that_is_killed_takes_the_request_along(
    tmp_path: Path, transport: Transport, worker_class: str
) -> None:
    with lending(tmp_path, transport, worker_class, expects="SIGKILL") as loans:
        begin_to_last(loans)
        os.kill(loans.borrower, signal.SIGKILL)
        assert is_cut_off(loans.wire)
        assert calls(loans.ledger)["lasts"] == 1, "it is begun nowhere else"
        until(lambda: has_renewed(loans, loans.borrower), "there is another worker")
        if transport is HTTP_2:
            reply = loans.wire.get("/facts")
            assert (reply.status, answerer(reply) in {loans.lender, loans.borrower}) == (200, False), "a new borrower"
        loans.busy.release()
        assert loans.server.get("/facts").status == 200


def has_renewed(loans: Loans, gone: int) -> bool:
    pids = loans.server.worker_pids()
    return len(pids) == 2 and gone not in pids and all(map(proc.is_running, pids))


@CLASSES
@LENDING
def test_a_lender_that_is_killed_is_a_client_that_has_left(
    tmp_path: Path, transport: Transport, worker_class: str
) -> None:
    with lending(tmp_path, transport, worker_class, expects="SIGKILL") as loans:
        begin_to_last(loans)
        os.kill(loans.lender, signal.SIGKILL)
        assert is_cut_off(loans.wire)
        until(lambda: ran(loans.ledger, "lasts.over") == loans.borrower, "its call ends")
        until(lambda: has_renewed(loans, loans.lender), "there is another worker")
        assert loans.server.get("/facts").status == 200
        assert loans.borrower in loans.server.worker_pids()


@CLASSES
@LENDING
def test_a_reload_while_a_request_is_lent_ends_it_well(tmp_path: Path, transport: Transport, worker_class: str) -> None:
    """Both workers leave, the lender last: it has the connection."""
    with lending(tmp_path, transport, worker_class) as loans:
        begin_to_last(loans)
        before = {loans.lender, loans.borrower}
        loans.server.signal(signal.SIGHUP)
        until(lambda: len(set(loans.server.worker_pids()) - before) == 2, "a new generation is there")
        assert answerer(loans.server.get("/facts")) not in before
        (tmp_path / "end").touch()
        reply = loans.wire.reply()
        assert (reply.status, reply.body[-8:], answerer(reply)) == (200, b"tickdone", loans.borrower)
        loans.busy.release()
        until(lambda: not before & set(loans.server.worker_pids()), "the old workers are gone")
        assert calls(loans.ledger)["lasts"] == 1


@CLASSES
@LENDING
def test_the_books_balance(tmp_path: Path, transport: Transport, worker_class: str) -> None:
    """A line of the access log and a count for each request, with the worker that has answered it."""
    count = 5
    with lending(tmp_path, transport, worker_class) as loans:
        before = loans.metrics()
        for number in range(count):
            by(loans, loans.wire.get(f"/lent{number}"))
        # A worker counts a request when the client has its response.
        answered = value(before, "requests_total") + count
        until(lambda: value(loans.metrics(), "requests_total") == answered, "all are counted")
        after = loans.metrics()

        def grown(name: str, **labels: str) -> float:
            return value(after, name, **labels) - value(before, name, **labels)

        assert grown("requests_lent_total") == grown("handovers_total", direction="sent") == count
        assert grown("handovers_total", direction="taken") == count
        loans.busy.release()
        loans.is_over()
        text = until(lambda: logged(tmp_path, count), "all are logged")
        assert set(text) == {f"<{loans.borrower}> 127.0.0.1 GET /lent{number} 200" for number in range(count)}
        assert set(text.values()) == {1}


def logged(tmp_path: Path, count: int) -> collections.Counter[str]:
    lines = [line.rpartition(" ")[0] for line in (tmp_path / "access").read_text().splitlines() if "/lent" in line]
    return collections.Counter(lines if len(lines) >= count else [])
