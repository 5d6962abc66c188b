"""Handshakes that never end, records that are none, and words of the wrong protocol."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import Pool
from tests.harness import APPS, KINDS, Server, proc, until, with_each
from tests.harness.certificates import Authority
from tests.harness.classes import EVERY, SERVERS_OF_CLASSES, each
from tests.harness.records import Records
from tests.harness.tls import SecureWire, client
from tests.harness.wire import Wire, request

pytestmark = pytest.mark.beyond_reference("handshakes hold up its threads")

HANDSHAKE_SECONDS = 1
PENDING = 20
MEGABYTE = 1 << 20
SENT = 34 * MEGABYTE
"""So long that the C library gives it back at once (mallopt(3), M_MMAP_THRESHOLD)."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> str:
    return authority.issue("server").pair


@pytest.fixture(params=each(*EVERY, *SERVERS_OF_CLASSES))
def server(request: pytest.FixtureRequest, pool: Pool, certificate: str, authority: Authority) -> Iterator[Server]:
    """Afterwards the same worker serves."""
    found = pool.get(
        worker_class=request.param,
        certificate=certificate,
        tls_handshake_timeout=HANDSHAKE_SECONDS,
        tls_pending_handshakes=PENDING,
        keep_alive=30,
    )
    workers = found.worker_pids()
    yield found
    serves(found, authority)
    assert found.worker_pids() == workers, found.log.text[-3000:]
    assert "[ERROR]" not in found.log.text, "clients cause no errors of the server"


def serves(server: Server, authority: Authority) -> None:
    with SecureWire(server.address, client(authority)) as wire:
        assert wire.get("/hello").status == 200


def hello(authority: Authority) -> bytes:
    """The first flight of a client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        client(authority).wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def test_a_handshake_at_a_byte_a_time_is_cut_off(server: Server, authority: Authority) -> None:
    data = hello(authority)
    with server.connect() as wire:
        began = time.monotonic()
        at = 0
        while not wire.is_let_go() and time.monotonic() < began + 30:
            try:
                wire.send(data[at : at + 1])
            except OSError:
                break
            at = (at + 1) % len(data)
            # Not for synchronisation: this client *is* slow.
            time.sleep(0.05)
        assert wire.is_let_go()
        assert time.monotonic() - began >= HANDSHAKE_SECONDS * 0.9


def test_a_client_that_stops_in_the_midst_of_a_handshake_is_cut_off(server: Server, authority: Authority) -> None:
    with server.connect() as wire:
        wire.send(hello(authority))
        assert wire.sock.recv(1)
        until(wire.is_let_go, "it is cut off")


def test_a_flood_of_silent_connections_leaves_room_for_others(server: Server, authority: Authority) -> None:
    with ExitStack() as stack:
        wires = [stack.enter_context(server.connect()) for _ in range(3 * PENDING)]
        for wire in wires:
            wire.send(b"\x16\x03\x01")
        serves(server, authority)
        until(lambda: all(wire.is_let_go() for wire in wires), "all are cut off")


def test_a_flood_of_hellos_takes_bounded_memory(server: Server, authority: Authority) -> None:
    worker, data = server.worker_pid(), hello(authority)
    before = proc.private_bytes(worker)
    with ExitStack() as stack:
        for _ in range(3 * PENDING):
            wire = stack.enter_context(server.connect())
            try:
                wire.send(data)
            except OSError:
                break
        serves(server, authority)
        assert proc.private_bytes(worker) - before < 16 * MEGABYTE


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\xff\xff" + b"\0" * 70_000,  # a record longer than there may be
        b"\x16\x03\x01\x00\x04\x01\xff\xff\xff" + b"\x16\x03\x01\x40\x00" + b"\0" * 16_384,  # a hello of 16 MiB
        b"\x80\x2e\x01\x00\x02" + b"\0" * 64,  # SSL 2
        b"\x17\x03\x03\x00\x10" + b"\0" * 16,  # data before keys
        b"\x15\x03\x01\x00\x02\x01\x00" * 50,  # warnings
        b"\0" * 1000,
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ],
    ids=["long_record", "long_hello", "ssl2", "data", "warnings", "nothing", "ssh"],
)
def test_what_is_no_handshake_ends_the_connection(data: bytes, server: Server) -> None:
    with server.connect() as wire:
        try:
            wire.send(data)
        except OSError:
            return
        rest = wire.ended()
        assert b"Hello" not in rest
        assert len(rest) < 1000


@with_each("version", ("1.2", "1.3"))
def test_a_client_with_many_certificates_is_refused_before_they_are_verified(
    version: str, pool: Pool, authority: Authority, certificate: str, tmp_path: Path
) -> None:
    options = {"certificate": certificate, "ca_certs": str(authority.certificate), "cert_reqs": 2}
    server = pool.get(worker_class="gthread", threads=4, keep_alive=30, **options)
    own = authority.issue("many")
    padding = tuple(f"{'x' * 60}{number}.test" for number in range(120))
    others = {"short": authority.issue("another"), "long": authority.issue("long", padding)}
    whole = own.certificate.read_bytes()

    def comes_with(count: int, what: str) -> int:
        own.certificate.write_bytes(whole + count * others[what].certificate.read_bytes())
        with SecureWire(server.address, client(authority, version, identity=own)) as wire:
            return wire.get("/hello").status

    assert comes_with(9, "short") == 200
    told = r"\[WARNING\] TLS handshake with ip=\S+ failed: "
    before = len(server.log.matching(told))
    refusals = (OSError, AssertionError)  # TLS 1.3: it is told when it reads
    with pytest.raises(refusals, match=r"(?i)certificate.unknown"):
        comes_with(10, "short")
    server.log.wait(told, count=before + 1)
    server.log.wait(told + "its chain has 11 certificates, more than 10")
    # Together more than 64 KiB. In TLS 1.3 they are encrypted, and rustls has no alert to answer with.
    with pytest.raises(refusals, match=r"(?i)decode.error" if version == "1.2" else None):
        comes_with(9, "long")
    assert comes_with(0, "short") == 200
    assert len(server.log.matching(told)) == before + 1, "no certificate was looked at"


def test_a_request_in_the_clear_is_told_so(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.get("/hello")
        assert reply.status == 400
        assert "HTTPS port" in reply.text
        wire.closed()


def test_bytes_in_the_clear_after_the_handshake_end_the_connection(server: Server, authority: Authority) -> None:
    with SecureWire(server.address, client(authority)) as wire:
        assert wire.get("/hello").status == 200
        os.write(wire.secure.fileno(), request("GET", "/hello"))
        with pytest.raises((ssl.SSLError, OSError, AssertionError)):
            wire.reply()


def test_a_record_that_was_changed_on_the_way_ends_the_connection(server: Server, authority: Authority) -> None:
    with SecureWire(server.address, client(authority)) as wire:
        assert wire.get("/hello").status == 200
        os.write(wire.secure.fileno(), b"\x17\x03\x03\x00\x20" + os.urandom(32))
        with pytest.raises(ssl.SSLError, match=r"(?i)bad.record.mac|decrypt"):
            wire.get("/hello")


def test_tls_at_an_address_in_the_clear_gets_an_alert(pool: Pool, authority: Authority) -> None:
    server = pool.get(worker_class="gthread", threads=4, keep_alive=30)
    with pytest.raises(ssl.SSLError, match=r"(?i)version|wrong"):
        SecureWire(server.address, client(authority))
    with Wire(server.address) as wire:
        wire.send(hello(authority))
        assert wire.ended()[:1] == b"\x15", "an alert, and no page"
    assert server.get("/hello").status == 200


class TestTaken:
    """Connections that applications have: a side that does not read costs the worker 64 KiB, and no client notices."""

    @pytest.fixture
    def taking(self, pool: Pool, certificate: str) -> Server:
        return pool.get("taken:application", chdir=APPS, worker_class="gthread", threads=4, certificate=certificate)

    def warmed_up(self, server: Server, authority: Authority) -> tuple[int, int]:
        """The worker, and what memory it has once a connection was taken."""
        for _ in range(8):
            with self.taken(server, authority, "/floods?count=70000") as wire:
                assert len(wire.ended()) == 70_000
        worker = server.worker_pid()
        return worker, proc.private_bytes(worker)

    def taken(self, server: Server, authority: Authority, target: str) -> SecureWire:
        wire = SecureWire(server.address, client(authority))
        wire.send(request("GET", target))
        assert wire._line("a line") == b"taken"
        return wire

    def test_a_client_that_sends_to_an_application_that_does_not_read(
        self, taking: Server, authority: Authority, tmp_path: Path
    ) -> None:
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        worker, before = self.warmed_up(taking, authority)
        with (
            self.taken(taking, authority, f"/deaf?fifo={fifo}") as wire,
            os.fdopen(os.open(fifo, os.O_RDWR), "wb", buffering=0) as held,
        ):
            wire.sock.settimeout(1)
            with pytest.raises(TimeoutError):
                wire.sock.sendall(b"x" * 64 * MEGABYTE)
            assert proc.private_bytes(worker) - before < 16 * MEGABYTE, "the doctor takes some as well"
            for _ in range(8):
                with SecureWire(taking.address, client(authority)) as other:
                    assert other.get("/pid").json() == worker
            held.write(b".")

    def test_a_client_that_reads_nothing_of_what_an_application_sends(
        self, taking: Server, authority: Authority
    ) -> None:
        worker, before = self.warmed_up(taking, authority)
        with ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(self.taken(taking, authority, f"/floods?count={SENT}"))
            for _ in range(8):
                with SecureWire(taking.address, client(authority)) as other:
                    assert other.get("/pid").json() == worker
            # The application has its bytes, and the worker next to none of them.
            assert proc.private_bytes(worker) - before < 2 * SENT + 16 * MEGABYTE
        with SecureWire(taking.address, client(authority)) as other:
            assert other.get("/pid").json() == worker


HOLLOW = 32
"""Records without content in a row that are let pass, as by OpenSSL and BoringSSL."""


def empty(wire: Records, _: int) -> bytes:
    return wire.seal(b"")


def update(wire: Records, _: int) -> bytes:
    return wire.update()


def both(wire: Records, number: int) -> bytes:
    return empty(wire, number) if number % 20 == 19 else update(wire, number)


def ends_without_content(server: Server, authority: Authority, begun: bytes) -> None:
    """Records take as long as others and fill no read; rustls counts each kind until one of the other comes."""
    for kind in (empty, update, both):
        with Records(server.address, authority) as wire:
            # What comes with the end of the handshake is not counted.
            wire.raw.sendall(wire.seal(request("GET", "/hello")))
            assert wire.reply().status == 200
            # No more than are counted: what is left unread resets the connection, and a reset overtakes the alert.
            wire.raw.sendall(wire.seal(begun) if begun else b"")
            wire.raw.sendall(b"".join(kind(wire, number) for number in range(HOLLOW + 1)))
            told = wire.told()
            assert "ALERT" in told, f"{kind.__name__}: {told}"


@pytest.mark.parametrize("begun", [b"", b"GET /hello HTTP/1.1\r\n"], ids=["idle", "head"])
def test_records_without_content_end_the_session(server: Server, authority: Authority, begun: bytes) -> None:
    ends_without_content(server, authority, begun)


@KINDS
def test_records_without_content_end_the_session_in_a_body(
    pool: Pool, certificate: str, authority: Authority, worker_class: str
) -> None:
    server = pool.get(worker_class=worker_class, certificate=certificate)
    ends_without_content(server, authority, request("POST", "/body", [("Content-Length", "9")]))
    serves(server, authority)


def test_some_records_without_content_are_no_matter(server: Server, authority: Authority) -> None:
    with Records(server.address, authority) as wire:
        sent = b""
        for piece in (request("POST", "/body", [("Content-Length", "3"), ("Connection", "close")]), b"a", b"b", b"c"):
            sent += b"".join(both(wire, number) for number in range(HOLLOW)) + wire.seal(piece)
        wire.raw.sendall(sent)
        assert wire.reply().json()["length"] == 3


def test_a_body_in_records_of_one_byte_arrives(server: Server, authority: Authority) -> None:
    body = os.urandom(20_000)
    with Records(server.address, authority) as wire:
        head = request("POST", "/body", [("Content-Length", str(len(body))), ("Connection", "close")])
        wire.raw.sendall(wire.seal(head) + b"".join(wire.seal(bytes([byte])) for byte in body))
        assert wire.reply().json()["length"] == len(body)
