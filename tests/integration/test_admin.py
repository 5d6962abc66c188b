"""The admin listener: questions about a worker, answered whatever the application is doing."""

from __future__ import annotations

import select
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness import KINDS, Server
from tests.harness.core import Serving, serving
from tests.harness.deadline import until
from tests.harness.server import free_port
from tests.harness.wire import Reply, Wire, request

ORDERS, CONNECTIONS, ACCEPTED, REQUESTS, REFUSED, STATUS = 6, 8, 16, 17, 18, 33


def hello(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [])
    return [b"hello"]


def ask(core: Serving, path: str, method: str = "GET") -> Reply:
    assert core.admin is not None
    with Wire(core.admin) as wire:
        return wire.ask(method, path)


@contextmanager
def busy(core: Serving, block: threading.Event, count: int) -> Iterator[None]:
    """Every app thread is inside the application until the block is left."""
    wires = [core.wire() for _ in range(count)]
    try:
        for wire in wires:
            wire.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n")
        until(lambda: core.word(9) == count, "calls in flight")
        yield
    finally:
        block.set()
        for wire in wires:
            wire.reply()
            wire.close()


class Blocking:
    def __init__(self) -> None:
        self.block = threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.block.wait(20)
        return hello(environ, start_response)


@pytest.fixture(scope="module")
def core() -> Iterator[Serving]:
    with serving(hello, admin=True) as core:
        yield core


def test_admin_answers_liveness_and_readiness(core: Serving) -> None:
    for path, text in [("/healthz", b"ok\n"), ("/readyz", b"ready\n"), ("/healthz?verbose", b"ok\n")]:
        reply = ask(core, path)
        assert (reply.status, reply.body) == (200, text)
        assert reply.get("Content-Type") == "text/plain"
        assert reply.get("Cache-Control") == "no-store"
        assert not reply.closes


def test_head_has_no_body(core: Serving) -> None:
    reply = ask(core, "/healthz", "HEAD")
    assert (reply.status, reply.get("Content-Length"), reply.body) == (200, "3", b"")


@pytest.mark.parametrize("path", ["//", "/healthz/", "/Healthz", "/health%7a", "*"])
def test_nothing_else_is_there(core: Serving, path: str) -> None:
    assert ask(core, path, "OPTIONS" if path == "*" else "GET").status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods_are_told_which_are_allowed(core: Serving, method: str) -> None:
    reply = ask(core, "/readyz", method)
    assert (reply.status, reply.get("Allow")) == (405, "GET, HEAD")


def test_a_connection_is_kept_and_may_be_pipelined(core: Serving) -> None:
    assert core.admin is not None
    with Wire(core.admin) as wire:
        for _ in range(3):
            assert wire.get("/healthz").body == b"ok\n"
        wire.send(b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\nHEAD /readyz HTTP/1.1\r\nHost: t\r\n\r\n" * 50)
        for _ in range(50):
            assert wire.reply().body == b"ok\n"
            assert wire.reply("HEAD").get("Content-Length") == "6"
        wire.send(b"GET /hea")
        assert wire.still_open()
        assert wire.send(b"lthz HTTP/1.0\r\n\r\n").reply().closes
        wire.closed()


def test_a_body_is_not_read(core: Serving) -> None:
    assert core.admin is not None
    with Wire(core.admin) as wire:
        wire.send(b"POST /healthz HTTP/1.1\r\nHost: t\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n")
        reply = wire.reply()
        assert (reply.status, reply.closes, reply.interims) == (405, True, [])
        wire.closed()


def test_nonsense_is_refused(core: Serving) -> None:
    assert core.admin is not None
    with Wire(core.admin) as wire:
        assert wire.send(b"nonsense\r\n\r\n").reply().status == 400
        wire.closed()


def test_it_counts_for_nothing_and_is_not_logged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = {"access_log": str(log), "access_log_format": "%(U)s", "worker_connections": 1}
    with serving(hello, admin=True, **options) as core:
        assert core.admin is not None
        wires = [Wire(core.admin) for _ in range(5)]
        for wire in wires:
            assert wire.get("/readyz").status == 200
        Wire(core.admin).send(b"nonsense\r\n\r\n").reply()
        assert [core.word(word) for word in (CONNECTIONS, ACCEPTED, REQUESTS, REFUSED, STATUS)] == [0] * 5
        with core.wire() as wire:
            assert wire.get("/logged").status == 200
        until(lambda: log.read_text() == "/logged\n", "the only line")
        for wire in wires:
            wire.close()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("siblings", [False, True])
def test_it_answers_while_every_thread_is_busy(threads: int, siblings: bool) -> None:
    application = Blocking()
    options = {"siblings": siblings, "worker_connections": threads}
    with serving(application, threads=threads, admin=True, **options) as core:
        assert core.admin is not None
        with Wire(core.admin) as before, busy(core, application.block, threads):
            for _ in range(3):
                assert before.get("/healthz").body == b"ok\n"
                assert ask(core, "/readyz").body == b"ready\n"


def test_it_answers_between_short_calls_that_never_pause() -> None:
    """No call is long enough for the monitor to step in, and no app thread has a reason to look at the events."""
    over = threading.Event()

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        end = time.perf_counter() + (0 if over.is_set() else 0.0005)
        while time.perf_counter() < end:
            pass
        return hello(environ, start_response)

    count = 20_000
    with serving(application, admin=True) as core, core.wire() as wire:
        reader = threading.Thread(target=lambda: [wire.reply() for _ in range(count)])
        sender = threading.Thread(target=lambda: wire.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n" * count))
        for thread in (reader, sender):
            thread.start()
        until(lambda: core.word(REQUESTS) > 100, "the stream of requests")
        assert ask(core, "/healthz").body == b"ok\n"
        assert core.word(REQUESTS) < count
        over.set()
        for thread in (sender, reader):
            thread.join()


def test_orders_make_it_not_ready() -> None:
    application = Blocking()
    with serving(application, admin=True) as core, busy(core, application.block, 1):
        core.page[ORDERS * 8] = 1
        reply = ask(core, "/readyz")
        assert (reply.status, reply.body, reply.get("Cache-Control")) == (503, b"not ready\n", "no-store")
        assert ask(core, "/healthz").status == 200
        core.page[ORDERS * 8] = 0
        assert ask(core, "/readyz").status == 200


def test_a_draining_worker_answers_until_it_ends() -> None:
    application = Blocking()
    with serving(application, admin=True) as core:
        assert core.admin is not None
        with Wire(core.admin) as kept:
            assert kept.get("/readyz").status == 200
            with busy(core, application.block, 1):
                core.core.drain()
                for reply in (kept.get("/readyz"), ask(core, "/readyz")):
                    assert (reply.status, reply.body) == (503, b"draining\n")
                assert kept.get("/healthz").body == b"ok\n"
            # A connection that asks nothing keeps no worker from leaving.
            until(lambda: not core.workers[0].is_alive(), "the end of the drain")


def test_a_worker_that_is_replaced_says_nothing_against_its_successor() -> None:
    application = Blocking()
    with serving(application, admin=True) as core:
        assert core.admin is not None
        with Wire(core.admin) as kept:
            assert kept.get("/readyz").status == 200
            with busy(core, application.block, 1):
                core.page[ORDERS * 8] = 8
                core.core.drain()
                reply = kept.get("/readyz")
                assert (reply.status, reply.closes) == (200, True)
            until(lambda: not core.workers[0].is_alive(), "the end of the drain")


@pytest.mark.parametrize("worker_class", ["gthread", "asgi"])
def test_the_server_stays_ready_while_it_reloads(worker_class: str, tmp_path: Path) -> None:
    gate, port = tmp_path / "gate", free_port()
    options: dict[str, Any] = {"graceful_timeout": 20, "admin_bind": f"127.0.0.1:{port}"}
    with Server(worker_class=worker_class, log_level="debug", **options) as server, server.connect() as wire:
        old = server.worker_pid()
        wire.send(request("GET", f"/gate?open={gate}"))
        until(lambda: list(tmp_path.glob("gate.in.*")), "the request is in the application")
        server.signal(signal.SIGHUP)
        server.log.wait(r"Worker \(pid:\d+\) is ready", count=2)
        until(lambda: int(server.get("/pid").body) != old, "the new one serves")
        # The old one is there still, and has one request to finish.
        for _ in range(50):
            with Wire(("127.0.0.1", port)) as probe:
                assert probe.get("/readyz").status == 200
        gate.touch()
        assert wire.reply().text.split()[0] == str(old)


def test_there_are_never_too_many() -> None:
    with serving(hello, admin=True) as core:
        assert core.admin is not None
        wires = [Wire(core.admin) for _ in range(100)]
        for wire in wires[-10:]:
            assert wire.get("/healthz").status == 200
        closed = 0
        for wire in wires[:-10]:
            closed += not wire.still_open(0.001)
        assert closed >= 36
        for wire in wires:
            wire.close()


def test_one_that_never_reads_is_let_go() -> None:
    with serving(hello, admin=True) as core:
        assert core.admin is not None
        with Wire(core.admin, receive_buffer=4096) as wire:
            for _ in range(100_000):
                try:
                    wire.send(b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n" * 1000)
                except ConnectionError:
                    break
            else:
                raise AssertionError("it may send for ever")
        assert ask(core, "/healthz").status == 200


def test_answers_that_do_not_fit_the_socket_are_sent_as_they_are_read() -> None:
    """A client that asks much before it reads loses no answer, not even a part of one."""
    question = b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n"
    with serving(hello, admin=True) as core:
        assert core.admin is not None
        with Wire(core.admin, receive_buffer=1 << 18) as wire:
            wire.sock.setblocking(False)
            asked = 0
            questions = memoryview(question * 1000)
            while select.select([], [wire.sock], [], 0.3)[1]:
                asked += wire.sock.send(questions[asked % len(question) :])
            rest = -asked % len(question)
            count, received, expected = (asked + rest) // len(question), bytearray(), 1
            while len(received) < expected:
                readable, writable, _ = select.select([wire.sock], [wire.sock] if rest else [], [], 20)
                assert readable or writable, f"{len(received)} bytes of answers, and then nothing"
                if writable:
                    rest -= wire.sock.send(question[-rest:])
                if readable:
                    piece = wire.sock.recv(1 << 20)
                    assert piece, f"closed after {len(received)} bytes of answers"
                    received += piece
                    expected = count * (received.find(b"ok\n") + len(b"ok\n")) or 1
            assert len(received) > 8_000_000, "more than sockets hold, so that the server had to wait"
            assert received.count(b"\r\n\r\nok\n") == received.count(b"HTTP/1.1 200 OK\r\n") == count


def test_paths_are_settings() -> None:
    with serving(hello, admin=True, health_path="/live", ready_path="/go") as core:
        assert [ask(core, path).status for path in ("/live", "/go", "/healthz", "/readyz")] == [200, 200, 404, 404]


@KINDS
def test_a_server_has_an_address_for_it(worker_class: str) -> None:
    port = free_port()
    with Server(worker_class=worker_class, workers=2, admin_bind=f"127.0.0.1:{port}", health_path="/up") as server:
        for path, text in [("/up", b"ok\n"), ("/readyz", b"ready\n")]:
            with Wire(("127.0.0.1", port)) as wire:
                assert wire.get(path).body == text
        assert server.get("/up").body == b"Hello\n", "elsewhere the path is the application's"
