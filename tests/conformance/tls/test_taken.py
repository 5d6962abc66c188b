"""Connections over TLS that applications take: as in the clear, but that the server carries the bytes."""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.tls.world import World, serve
from tests.conftest import Pool
from tests.harness import Server, proc, until, with_each
from tests.harness.classes import THREADED, WSGI, each
from tests.harness.deadline import PATIENCE
from tests.harness.frames import BINARY, CLOSE, PING, PONG, TEXT
from tests.harness.needs import needs
from tests.harness.tls import SecureFrames, SecureWire, client
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("its sockets are Python's, and its servers answer as they do")

FRAMEWORKS = Path(__file__).parents[2] / "frameworks/apps"
MUCH = 300_000
"""Bytes: more than a pair of sockets holds."""
ALERT, DATA = 21, 23
"""Kinds of records, of TLS 1.2."""
ONE_MIB = bytes(range(256)) * 4096
CLASSES = pytest.mark.parametrize("alias", each(*WSGI))


def started(pool: Pool, alias: str, settings: dict[str, Any]) -> Server:
    options: dict[str, Any] = {"threads": 4} if alias == "gthread" else {}
    return serve(pool, alias, "taken:application", **settings, **options)


def taken(server: Server, world: World, target: str, **how: Any) -> SecureWire:
    """A connection that the application has."""
    wire = SecureWire(server.address, client(world.authority, **how))
    wire.send(request("GET", target))
    assert wire._line("a line") == b"taken"
    return wire


@CLASSES
def test_bytes_pass_both_ways(alias: str, pool: Pool, world: World) -> None:
    server = started(pool, alias, world.settings())
    with taken(server, world, "/echoes") as wire:
        for text in (b"a line", b"x" * MUCH, b"another"):
            wire.send(text, b"\r\n")
            assert wire._line("a line") == text.upper()


@CLASSES
@with_each(("version", "kinds"), [("1.2", [DATA, ALERT]), ("1.3", [DATA, DATA])])
def test_an_end_is_passed_on_and_answered(alias: str, version: str, kinds: list[int], pool: Pool, world: World) -> None:
    """Python's ssl has no half-close: the client says by TCP that it has said all, and sees what comes then."""
    server = started(pool, alias, world.settings())
    with taken(server, world, "/echoes", version=version) as wire:
        wire.send(b"a line\r\n")
        assert wire._line("a line") == b"A LINE"
        with socket.socket(fileno=wire.secure.detach()) as plain:
            plain.settimeout(PATIENCE)
            plain.shutdown(socket.SHUT_WR)
            rest = b""
            while piece := plain.recv(65536):
                rest += piece
    found = []
    while rest:
        found.append(rest[0])
        rest = rest[5 + int.from_bytes(rest[3:5], "big") :]
    assert found == kinds, "what the application sends at last, and close_notify, which TLS 1.3 hides"


@CLASSES
def test_what_came_with_the_request_comes_first(alias: str, pool: Pool, world: World) -> None:
    server = started(pool, alias, world.settings())
    with SecureWire(server.address, client(world.authority)) as wire:
        wire.send(request("GET", "/echoes"), b"early\r\n")
        assert (wire._line("a line"), wire._line("a line")) == (b"taken", b"EARLY")


@CLASSES
def test_what_was_sent_before_the_call_ended_arrives_with_the_end(alias: str, pool: Pool, world: World) -> None:
    server = started(pool, alias, world.settings())
    with taken(server, world, f"/floods?count={MUCH}") as wire:
        assert wire.ended() == b"x" * MUCH
        wire.secure.unwrap()  # raises where the end is not told by TLS
    with taken(server, world, "/answers") as wire:
        assert wire.reply().json() == "and HTTP"
        wire.closed()


@CLASSES
def test_the_socket_knows_the_client_before_and_after_it_is_taken(alias: str, pool: Pool, world: World) -> None:
    server = started(pool, alias, world.mutual())
    context = client(world.authority, "1.3", identity=world.client, alpn=("http/1.1",))
    with SecureWire(server.address, context) as wire:
        names = [list(wire.sock.getsockname()), list(wire.sock.getpeername())]
        before = wire.get("/facts").json()
        wire.send(request("GET", "/tells"))
        assert wire._line("a line") == b"taken"
        wire.send(b".")
        after = json.loads(wire._line("a line"))
        wire.closed()
    assert (after.pop("is_open"), after.pop("end")) == (True, ".")
    assert before == after
    assert before["names"] == names
    assert (before["version"], before["alpn"]) == ("TLSv1.3", "http/1.1")
    assert before["cipher"][1:] == ["TLSv1.3", 256]
    assert bytes.fromhex(before["binary"]) == ssl.PEM_cert_to_DER_cert(world.client.certificate.read_text())
    assert [["commonName", "client"]] in before["certificate"]["subject"]
    assert ["DNS", "client.test"] in before["certificate"]["subjectAltName"]


@CLASSES
def test_a_client_without_a_certificate_has_none(alias: str, pool: Pool, world: World) -> None:
    server = started(pool, alias, world.settings())
    with SecureWire(server.address, client(world.authority)) as wire:
        told = wire.get("/facts").json()
        assert (told["certificate"], told["binary"], told["alpn"]) == (None, None, None)
        asked = wire.get("/asks").json()
    assert asked == ["getpeercert", "cipher", "version", "selected_alpn_protocol"]


@CLASSES
def test_a_plain_socket_has_no_session_and_is_not_taken_by_the_question(alias: str, pool: Pool) -> None:
    server = started(pool, alias, {})
    with server.connect() as wire:
        assert wire.get("/asks").json() == []
        assert wire.get("/asks").json() == [], "the connection is kept"


@CLASSES
def test_a_websocket_of_simple_websocket(alias: str, pool: Pool, world: World) -> None:
    needs("simple_websocket")
    server = started(pool, alias, world.settings())
    context = client(world.authority)
    with SecureFrames(server.address, "/socket", ("Sec-WebSocket-Protocol", "one"), context=context) as sock:
        assert sock.response.get("sec-websocket-protocol") == "one"
        sock.echoes("grüß")
        sock.echoes(b"\0\xff")
        sock.put(PING, b"there?")
        got = sock.frame()
        assert (got.first, got.payload) == (PONG, b"there?")
        if alias in THREADED:  # elsewhere `send` of the library's may send a part, which it does not look at
            sock.echoes(ONE_MIB)
        sock.put(TEXT, b"bye")
        got = sock.frame()
        assert (got.first, got.code, got.reason) == (CLOSE, 4000, "as asked")
        sock.put(CLOSE, got.payload)
        sock.closed()
    with SecureFrames(server.address, "/socket", context=context) as sock:
        sock.put(BINARY, b"x" * 70_000)
        assert sock.message() == b"x" * 70_000
        sock.put(CLOSE, b"\x03\xe9")
        got = sock.frame()
        assert (got.first, got.code) == (CLOSE, 1001)
        sock.closed()
    server.out.wait("closed 1001")


@CLASSES
def test_clients_that_leave_without_a_word_leave_nothing_behind(alias: str, pool: Pool, world: World) -> None:
    needs("simple_websocket")
    server = started(pool, alias, world.settings())
    context = client(world.authority)
    with SecureFrames(server.address, "/socket", context=context) as sock:
        sock.echoes()
    worker = server.worker_pid()
    before = proc.descriptors(worker)
    for number in range(8):
        with SecureFrames(server.address, "/socket", context=context) as sock:
            sock.echoes()
            if number % 2:
                sock.reset()
    until(lambda: proc.descriptors(worker) <= before, "its descriptors are free again")
    with SecureWire(server.address, context) as wire:
        assert wire.get("/pid").json() == worker


def test_a_handler_of_tornados_that_takes_the_connection(pool: Pool, world: World) -> None:
    needs("tornado")
    server = pool.get("tornado_app:application", chdir=FRAMEWORKS, worker_class="tornado", **world.settings())
    with SecureWire(server.address, client(world.authority)) as wire:
        wire.send(b"GET /raw HTTP/1.1\r\nHost: t\r\n\r\nearly\n")
        assert wire.ended().endswith(b"\r\n\r\nEARLY\n")
        wire.secure.unwrap()
