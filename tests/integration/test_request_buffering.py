"""`request_buffering = off`: an application is called with the head of its request, and reads the body as it comes."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from tests.harness import THREAD_CLASSES, Server, each, proc, until
from tests.harness.classes import WSGI
from tests.harness.core import serving
from tests.harness.wire import chunked, request

BODY_SECONDS = 1
RATE = 100
LIMIT = 4 << 20
BIG = bytes(range(251)) * 12_000  # 3 MB
REFUSED, BODY_TIMEOUTS, CLIENT_GONE, APP_ERRORS = 18, 20, 24, 26

pytestmark = pytest.mark.beyond_reference("it has no such setting")


@pytest.fixture(scope="module", params=each(*WSGI))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    options: dict[str, Any] = {"threads": 2} if request.param == "gthread" else {}
    with Server(
        worker_class=request.param,
        no_request_buffering=True,
        body_timeout=BODY_SECONDS,
        body_min_rate=RATE,
        limit_request_body=LIMIT,
        keep_alive=30,
        **options,
    ) as server:
        yield server


def head(target: str, *fields: str) -> bytes:
    lines = [f"POST {target} HTTP/1.1", "Host: t", "Content-Type: text/plain", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def pieces(body: bytes, size: int = 70_001) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


def test_an_upload_is_refused_before_it_is_sent(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.send(head("/upload?how=refuse", f"Content-Length: {LIMIT}")).reply()
        assert (reply.status, reply.body) == (401, b"no")
        assert reply.closes, "the rest is not waited for, and the client is told so"
        wire.send(b"x" * 1000)  # our side is still read from for a moment
        wire.closed()


def test_a_client_that_asks_first_is_told_when_the_body_is_read(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.send(head("/upload?how=refuse", "Content-Length: 3", "Expect: 100-continue")).reply()
        assert (reply.status, reply.interims) == (401, [])
        assert reply.closes
        wire.closed()
    with server.connect() as wire:
        wire.send(head("/upload?how=all", "Content-Length: 3", "Expect: 100-continue"))
        assert wire.interim().status == 100
        reply = wire.send(b"abc").reply()
        assert reply.json() == {"length": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}
        assert not reply.closes
        assert wire.get("/hello").status == 200


@pytest.mark.parametrize("how", ["length", "chunks"])
def test_a_body_is_read_while_it_comes(server: Server, how: str) -> None:
    fields = f"Content-Length: {len(BIG)}" if how == "length" else "Transfer-Encoding: chunked"
    with server.connect() as wire:
        for _ in range(2):
            wire.send(head("/upload?how=all", fields))
            for piece in pieces(BIG):
                wire.send(piece if how == "length" else b"%x\r\n%b\r\n" % (len(piece), piece))
            if how == "chunks":
                wire.send(b"0\r\n\r\n")
            reply = wire.reply()
            assert reply.json() == {"length": len(BIG), "sha256": hashlib.sha256(BIG).hexdigest()}
            assert not reply.closes


def test_lines_are_given_out_as_they_come(server: Server) -> None:
    """An application may answer while it reads: nothing waits for the end of the body."""
    with server.connect() as wire:
        wire.send(head("/upload?raw&how=stream", "Transfer-Encoding: chunked"))
        for word in (b"one", b"two", b"three"):
            line = word + b"\n"
            wire.send(b"%x\r\n%b\r\n" % (len(line), line))
            if word == b"one":
                assert wire._head(False).status == 200
            chunk = b"%x\r\n%b\r\n" % (len(line), line.upper())
            assert wire._exactly(len(chunk), "a chunk") == chunk
        wire.send(b"0\r\n\r\n")
        assert wire._exactly(5, "the end") == b"0\r\n\r\n"
        assert wire.get("/hello").status == 200


@pytest.mark.parametrize(
    "how", ["read_n", "read", "read_minus_one", "readline", "readline_n", "readlines", "iterate", "mixed"]
)
def test_every_way_to_read_gives_what_it_gives_in_a_body_that_is_there(server: Server, how: str) -> None:
    body = b"".join(bytes([97 + number % 26]) * (number % 89) + b"\n" for number in range(2000)) + b"last"
    target = f"/body?raw&how={how}&size=57"
    with server.connect() as wire:
        wire.send(head(target, f"Content-Length: {len(body)}"), body[:100])
        for piece in pieces(body[100:], 30_011):
            wire.send(piece)
        came = wire.reply().json()
    # What is sent with its head is there when the application begins.
    small = body[:10_000]
    with server.connect() as wire:
        whole = wire.send(head(target, f"Content-Length: {len(small)}") + small).reply().json()
    assert came["length"] == len(body)
    assert came["sha256"] == hashlib.sha256(body).hexdigest()
    shared = len(whole["sizes"]) - 1
    if how not in ("read", "read_minus_one"):
        assert shared > 10
        assert came["sizes"][:shared] == whole["sizes"][:shared]


def test_the_next_request_follows_a_body_that_was_read(server: Server) -> None:
    with server.connect() as wire:
        wire.send(head("/upload?how=all", f"Content-Length: {len(BIG)}"), BIG[:1000])
        wire.send(BIG[1000:] + request("GET", "/hello") + request("POST", "/upload?how=all", [], b"abc"))
        assert wire.reply().json()["length"] == len(BIG)
        assert wire.reply().body == b"Hello\n"
        assert wire.reply().json()["length"] == 3


def test_a_body_that_is_not_read_is_not_the_next_request(server: Server) -> None:
    smuggled = request("GET", "/crash?when=call") * 50
    with server.connect() as wire:
        wire.send(head("/upload?how=refuse", f"Content-Length: {len(smuggled) + 100_000}") + smuggled)
        reply = wire.reply()
        assert reply.status == 401
        assert reply.closes
        wire.closed()
    # A rest that is there is thrown away, and the connection stays.
    with server.connect() as wire:
        wire.send(request("POST", "/upload?how=refuse", [], smuggled), request("GET", "/pid"))
        reply = wire.reply()
        assert reply.status == 401
        assert not reply.closes
        assert wire.reply().body.isdigit()


@pytest.mark.parametrize("how", ["all", "catch"])
def test_a_slow_client_is_cut_off_by_the_minimum_rate(server: Server, how: str) -> None:
    with server.connect() as wire:
        began = time.monotonic()
        wire.send(head(f"/upload?how={how}", "Content-Length: 1000"), b"x" * 10)
        # Not for synchronisation: no wait for this client is too long, and all of them together are.
        time.sleep(BODY_SECONDS * 0.6)
        wire.send(b"x")
        reply = wire.reply()
        assert time.monotonic() - began > BODY_SECONDS * 0.9
        if how == "all":
            assert reply.status == 408
        else:
            assert reply.status == 200
            assert reply.text.startswith("BodyError: ")
        assert reply.closes
    server.log.wait(r"Invalid request from ip=127\.0\.0\.1: .*bytes/s\)")
    assert "Error handling request" not in server.log.text, "it is no error of the application"


def test_a_client_that_is_slow_but_fast_enough_is_served(server: Server) -> None:
    with server.connect() as wire:
        wire.send(head("/upload?how=all", "Content-Length: 1000"))
        for _ in range(10):
            wire.send(b"b" * 100)
            # Not for synchronisation: this client *is* slow, 500 bytes a second where 100 are asked for.
            time.sleep(0.2)
        assert wire.reply().json()["length"] == 1000


@pytest.mark.parametrize("leave", ["close", "half", "reset"])
def test_a_client_that_leaves_ends_the_read(server: Server, leave: str) -> None:
    with contextlib.closing(server.connect()) as wire:
        wire.send(head("/upload?how=all", "Content-Length: 1000"), b"x" * 10)
        {"close": wire.close, "half": wire.finish_sending, "reset": wire.reset}[leave]()
        with server.connect() as other:
            assert other.get("/hello").status == 200
        if leave == "half":
            wire.closed()


def test_a_body_that_is_too_long_is_refused_where_it_is_known(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.send(head("/upload?how=all", f"Content-Length: {LIMIT + 1}", "Expect: 100-continue")).reply()
        assert (reply.status, reply.interims) == (413, [])
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for how, status in (("all", 413), ("catch", 200)):
        with server.connect() as wire:
            wire.send(head(f"/upload?how={how}", "Transfer-Encoding: chunked"), piece * (LIMIT // 0x10000 + 1))
            reply = wire.reply()
            assert reply.status == status
            assert "too large" in reply.text
            assert reply.closes


def test_nothing_is_left_open(server: Server) -> None:
    worker = server.worker_pid()
    server.get("/hello")
    until(lambda: server.get("/hello"), "it serves")
    before = proc.descriptors(worker)
    for _ in range(10):
        with server.connect() as wire:
            wire.send(head("/upload?how=all", "Content-Length: 1000"), b"x" * 10)
            wire.reset()
    until(lambda: proc.descriptors(worker) <= before, "the descriptors are given back")


@pytest.mark.parametrize("worker_class", each("gevent", "eventlet"))
def test_a_read_that_waits_lets_other_greenlets_go_on(worker_class: str) -> None:
    with Server(worker_class=worker_class, no_request_buffering=True) as server:
        wires = [server.connect() for _ in range(5)]
        try:
            for wire in wires:
                wire.send(head("/upload?how=all", "Content-Length: 10"))
            assert server.get("/hello").status == 200
            for wire in wires:
                assert wire.send(b"0123456789").reply().json()["length"] == 10
        finally:
            for wire in wires:
                wire.close()


def test_the_wait_of_a_thread_is_without_the_lock_of_python() -> None:
    with Server(worker_class="gthread", threads=2, no_request_buffering=True) as server, server.connect() as wire:
        wire.send(head("/upload?how=all", "Content-Length: 10"))
        assert server.get("/hello").status == 200
        assert wire.send(b"0123456789").reply().json()["length"] == 10


@pytest.mark.parametrize("worker_class", each(*WSGI))
def test_request_timeout_ends_a_read(worker_class: str) -> None:
    with (
        Server(worker_class=worker_class, no_request_buffering=True, request_timeout=0.5) as server,
        server.connect() as wire,
    ):
        wire.send(head("/upload?how=all", "Content-Length: 10"))
        assert wire.reply().status == 504
        server.log.wait(r"exceeded request_timeout \(0\.5 s\)")


@THREAD_CLASSES
def test_the_wait_for_a_client_is_no_stuck_application(worker_class: str) -> None:
    """`timeout` does not count it; it counts again when the application has what it waited for."""
    with Server(worker_class=worker_class, no_request_buffering=True, timeout=1) as server:
        worker = server.worker_pid()
        with server.connect() as wire:
            wire.send(head("/upload?how=all", "Content-Length: 30"))
            for _ in range(3):
                # Not for synchronisation: this client takes its time.
                time.sleep(1.2)
                wire.send(b"0123456789")
            assert wire.reply().json()["length"] == 30
        assert server.worker_pid() == worker
        assert "WORKER TIMEOUT" not in server.log.text
        with server.connect() as wire:
            wire.send(request("GET", "/sleep?s=5"))
            server.log.wait(rf"WORKER TIMEOUT \(pid:{worker}\)")


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    source = environ["wsgi.input"]
    body = source.read()
    start_response("200 OK", [])
    return [str(len(body)).encode()]


OPTIONS: dict[str, Any] = {"streaming": True, "body_timeout": 1.0, "body_min_rate": 100}


def test_what_clients_do_is_counted_as_theirs() -> None:
    with serving(application, **OPTIONS) as core:
        with core.wire() as wire:
            assert wire.send(head("/", "Content-Length: 10")).reply().status == 408
        assert core.word(BODY_TIMEOUTS) == 1
        with core.wire() as wire:
            assert wire.send(head("/", "Transfer-Encoding: chunked"), b"zz\r\n").reply().status == 400
        assert core.word(REFUSED) == 1
        with core.wire() as wire:
            wire.send(head("/", "Content-Length: 10"), b"x")
            wire.reset()
        until(lambda: core.word(CLIENT_GONE) == 1, "it has left")
        assert core.word(APP_ERRORS) == 0
        assert core.errors == []


def test_an_input_that_outlives_its_request_says_so() -> None:
    kept: list[Any] = []

    def keeper(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        kept.append(environ["wsgi.input"])
        start_response("200 OK", [])
        return [b"kept"]

    with serving(keeper, **OPTIONS) as core, core.wire() as wire:
        assert wire.send(head("/", "Content-Length: 10")).reply().body == b"kept"
        with pytest.raises(RuntimeError, match="the request this belongs to is over"):
            kept[0].read()
        assert core.wire().send(head("/", "Content-Length: 10")).reply().body == b"kept"
        with pytest.raises(RuntimeError, match="the request this belongs to is over"):
            kept[0].read()


def test_a_thread_may_read_while_another_answers() -> None:
    """The wait for the body does not keep the response."""
    got: list[bytes] = []
    readers: list[threading.Thread] = []

    def both(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        source = environ["wsgi.input"]
        reader = threading.Thread(target=lambda: got.append(source.read()))
        readers.append(reader)
        reader.start()
        start_response("200 OK", [])
        yield b"first"
        reader.join(20)
        yield b"last"

    with serving(both, **OPTIONS | {"body_timeout": 30.0}) as core, core.wire() as wire:
        wire.send(head("/", "Content-Length: 10"))
        assert wire._head(False).status == 200
        assert wire._exactly(10, "a chunk") == b"5\r\nfirst\r\n"
        wire.send(b"0123456789")
        assert wire._exactly(14, "the end") == b"4\r\nlast\r\n0\r\n\r\n"
    assert got == [b"0123456789"]


def test_chunks_in_one_go() -> None:
    with serving(application, **OPTIONS) as core, core.wire() as wire:
        wire.send(head("/", "Transfer-Encoding: chunked") + chunked([b"x" * 1000] * 100))
        assert wire.reply().body == b"100000"
        assert wire.ask("POST", "/", [], b"").body == b"0"
