"""Certificates and keys while the server runs: they change, are broken, and sessions are resumed by every process."""

from __future__ import annotations

import os
import signal
import ssl
import time
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pytest

from tests.harness import Site, until
from tests.harness.certificates import Authority, Issued
from tests.harness.classes import EVERY, SERVERS_OF_CLASSES, configured, each
from tests.harness.load import CLOSE, Load
from tests.harness.server import free_port
from tests.harness.tls import SecureWire, client
from tests.harness.wire import Address, Wire, request

pytestmark = pytest.mark.beyond_reference("it reads certificates in its own ways, and shares no sessions")

RELOAD = 1


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def site(issued: Issued, more: str = "", **options: object) -> Site:
    lines = f"certfile = {str(issued.certificate)!r}\nkeyfile = {str(issued.key)!r}\ntls_reload = {RELOAD}\n"
    return Site(lines + more, **options)  # type: ignore[arg-type]


def put(issued: Issued, of: Issued) -> None:
    """Another certificate in the place of `of`, the key a moment later, as programs do that renew them."""
    for there, new in ((of.certificate, issued.certificate), (of.key, issued.key)):
        fresh = there.with_suffix(".fresh")
        fresh.write_bytes(new.read_bytes())
        fresh.rename(there)


def serial(server: Site, context: ssl.SSLContext) -> str:
    with SecureWire(server.address, context) as wire:
        return wire.serial


@pytest.mark.parametrize("worker_class", each(*EVERY, *SERVERS_OF_CLASSES))
def test_a_configuration_of_gunicorns_is_served_by_every_class(worker_class: str, authority: Authority) -> None:
    issued = authority.issue("server")
    lines = (
        "ssl_version = 2\ncert_reqs = 0\nsuppress_ragged_eofs = True\ndo_handshake_on_connect = False\nciphers = None\n"
    )
    with site(issued, configured(worker_class) + lines) as server:
        server.log.wait(rf"Listening at: https://127\.0\.0\.1:{server.port} ")
        for version in ("1.2", "1.3"):
            with SecureWire(server.address, client(authority, version)) as wire:
                assert wire.get("/hello").text == "Hello\n"
                assert wire.serial == issued.serial


def test_a_new_certificate_is_taken_without_a_reload(authority: Authority) -> None:
    issued, second = authority.issue("server"), authority.issue("server", file="second")
    context = client(authority)
    with site(issued, "workers = 2\n", workers=2) as server, SecureWire(server.address, context) as kept:
        assert kept.get("/hello").status == 200
        before = server.worker_pids()
        assert serial(server, context) == issued.serial
        put(second, issued)
        server.log.wait(rf"\[INFO\] TLS: localhost, 127\.0\.0\.1: serial {second.serial}, valid until 20")
        assert {serial(server, context) for _ in range(20)} == {second.serial}
        assert kept.get("/hello").status == 200, "a connection keeps what it has begun with"
        assert server.worker_pids() == before


def test_a_broken_one_is_told_and_that_of_before_stays(authority: Authority) -> None:
    issued, context = authority.issue("server"), client(authority)
    with site(issued) as server:
        issued.key.write_text("nonsense")
        server.log.wait(
            r"\[ERROR\] Could not load the new TLS files; still using the previous certificates: .*server-certificate"
        )
        assert serial(server, context) == issued.serial
        # Nor does a reload take it: the server goes on as it was.
        before = server.worker_pids()
        server.signal(signal.SIGHUP)
        server.log.wait(r"\[ERROR\] .*server-certificate\.pem", count=2)
        assert serial(server, context) == issued.serial
        assert server.worker_pids() == before
        put(authority.issue("server", file="third"), issued)
        server.log.wait(r"\[INFO\] TLS: ", count=2)
        assert serial(server, context) != issued.serial


def test_without_looks_a_reload_takes_it(authority: Authority) -> None:
    issued, second = authority.issue("server"), authority.issue("server", file="second")
    context = client(authority)
    with site(issued, "tls_reload = 0\n") as server:
        put(second, issued)
        assert serial(server, context) == issued.serial
        server.hup()
        until(lambda: serial(server, context) == second.serial, "the new certificate is in force")


def test_no_request_is_lost_while_certificates_change_and_the_server_reloads(authority: Authority) -> None:
    issued, context = authority.issue("server"), client(authority)
    others = [authority.issue("server", file=f"other{number}") for number in range(6)]

    def connect(address: Address, timeout: float) -> Wire:
        return SecureWire(address, context, timeout=timeout)

    with site(issued, "workers = 2\n", workers=2) as server:
        kept = Load(server.address, clients=3, connect=connect)
        fresh = Load(server.address, clients=2, connect=connect, fields=CLOSE)
        with kept, fresh:
            for turn, other in enumerate(others):
                put(other, issued)
                if turn % 2:
                    server.hup()
                until(lambda now=other.serial: serial(server, context) == now, "the new one is in force")
                fresh.settle(5)
        assert kept.tally.failures + fresh.tally.failures == []


AT_LEAST = 10_000
LATE = 10
"""Seconds behind `tls_reload`. Later a certificate of before is no longer the fault of a busy machine."""


class Handshakes:
    """Certificates that clients were shown, and since when there were new ones."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._shown: list[tuple[float, str]] = []
        self._put: list[tuple[float, str]] = []

    def connect(self, address: Address, timeout: float) -> Wire:
        began = time.monotonic()
        wire = SecureWire(address, self._context, timeout=timeout)
        self._shown.append((began, wire.serial))
        return wire

    def put(self, issued: Issued, of: Issued) -> None:
        put(issued, of)
        self._put.append((time.monotonic(), issued.serial))

    def count(self) -> int:
        return len(self._shown)

    def delays(self) -> list[float]:
        """For each handshake how long the certificate that it was shown had been replaced for; 0: it was the newest."""
        order = [serial for _, serial in self._put]
        delays = []
        for began, serial in self._shown:
            following = order.index(serial) + 1 if serial in order else 0
            delays.append(max(0.0, began - self._put[following][0]) if following < len(order) else 0.0)
        return delays


@pytest.mark.skipif(os.environ.get("TRICORN_TEST_TLS") != "1", reason="TRICORN_TEST_TLS=1 asks for it")
@pytest.mark.parametrize("worker_class", each(*EVERY, *SERVERS_OF_CLASSES))
def test_ten_thousand_requests_while_certificates_change_each_second(worker_class: str, authority: Authority) -> None:
    """And the server reloads each second: none is lost, and new handshakes have new certificates."""
    issued, seen = authority.issue("server"), Handshakes(client(authority))
    with site(issued, configured(worker_class) + "workers = 2\n", workers=2) as server:
        seen.put(authority.issue("server", file="first"), issued)
        kept = Load(server.address, clients=4, connect=seen.connect)
        fresh = Load(server.address, clients=4, connect=seen.connect, fields=CLOSE)
        turns = 0
        with kept, fresh:
            while kept.answers() + fresh.answers() < AT_LEAST:
                turns += 1
                seen.put(authority.issue("server", file=f"other{turns}"), issued)
                server.signal(signal.SIGHUP)
                # Not for synchronisation: the period.
                time.sleep(1)
        answered = kept.tally.answered + fresh.tally.answered
        delays = sorted(seen.delays())
        print(
            f"{worker_class}: {answered} requests, {seen.count()} handshakes, {turns} certificates and reloads; "
            f"the oldest certificate that was shown had been replaced for {delays[-1]:.2f} s"
        )
        assert kept.tally.failures + fresh.tally.failures == []
        assert delays[-1] < RELOAD + LATE
        assert seen.count() > fresh.tally.answered // 2


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_session_is_resumed_whichever_worker_it_comes_to(version: str, authority: Authority, tmp_path: Path) -> None:
    """A worker that is at a request takes no connection: four at a time come to all four."""
    context, gate = client(authority, version), tmp_path / "gate"
    resumed = 0
    with site(authority.issue("server"), "worker_class = 'sync'\nworkers = 4\n", workers=4) as server:
        until(lambda: len(server.worker_pids()) == 4, "four workers")
        with SecureWire(server.address, context) as wire:
            wire.get("/hello")
            session = wire.secure.session
        for turn in range(4):
            met = []
            with ExitStack() as stack:
                for count in range(1, 5):
                    wire = stack.enter_context(SecureWire(server.address, context, session=session))
                    resumed += bool(wire.secure.session_reused)
                    wire.send(request("GET", f"/gate?open={gate}{turn}"))
                    inside = f"gate{turn}.in.*"
                    until(lambda many=count, files=inside: len(list(tmp_path.glob(files))) == many, "it is inside")
                    met.append(wire)
                (tmp_path / f"gate{turn}").touch()
                pids = {int(wire.reply().text.split()[0]) for wire in met}
                session = met[-1].secure.session
            assert pids == set(server.worker_pids())
        for _ in range(84):
            with SecureWire(server.address, context, session=session) as wire:
                wire.get("/hello")
                resumed += bool(wire.secure.session_reused)
                session = wire.secure.session
    assert resumed >= 99


@pytest.mark.parametrize("how", ["HUP", "USR2"])
def test_sessions_outlive_a_reload_and_an_upgrade(how: str, authority: Authority) -> None:
    context = client(authority)
    with site(authority.issue("server")) as server:
        with SecureWire(server.address, context) as wire:
            wire.get("/hello")
            session = wire.secure.session
        if how == "HUP":
            server.hup()
        else:
            server.signal(signal.SIGUSR2)
            (found,) = server.log.wait(r"Started a successor with pid: (\d+)")
            server.log.wait(r"Ready: ", count=2)
            server.signal(signal.SIGTERM)
            server.wait_exit(outlived=True)
        try:
            with SecureWire(server.address, context, session=session) as wire:
                assert wire.get("/hello").status == 200
                assert wire.secure.session_reused
        finally:
            if how == "USR2":
                os.kill(int(found[1]), signal.SIGTERM)
                until(lambda: not server.leftovers(), "the successor has ended")


def test_hosts_with_the_same_keys_of_tickets_resume_one_anothers_sessions(authority: Authority, tmp_path: Path) -> None:
    key = tmp_path / "ticket.key"
    key.write_bytes(os.urandom(80))
    issued, context = authority.issue("server"), client(authority)
    lines = f"tls_ticket_keys = [{str(key)!r}]\n"
    with site(issued, lines) as one, site(issued, lines) as other, site(issued) as stranger:
        with SecureWire(one.address, context) as wire:
            wire.get("/hello")
            session = wire.secure.session
        for server, expected in ((other, True), (stranger, False)):
            with SecureWire(server.address, context, session=session) as wire:
                wire.get("/hello")
                assert wire.secure.session_reused is expected


RULES = {
    "none": "",
    "required": "cert_reqs = 2\nca_certs = {ca!r}\n",
    "optional": "cert_reqs = 1\nca_certs = {ca!r}\n",
    "other authority": "cert_reqs = 2\nca_certs = {both!r}\n",
    "a list": "cert_reqs = 2\nca_certs = {ca!r}\ntls_crl_file = [{crl!r}]\n",
}


def test_a_session_is_resumed_only_under_the_rules_that_have_let_it_in(authority: Authority, tmp_path: Path) -> None:
    """Hosts that share the keys of tickets, and verify clients in five ways."""
    key, both = tmp_path / "ticket.key", tmp_path / "both.pem"
    key.write_bytes(os.urandom(80))
    other = Authority(tmp_path, "other")
    both.write_bytes(authority.certificate.read_bytes() + other.certificate.read_bytes())
    files = {
        "ca": str(authority.certificate),
        "both": str(both),
        "crl": str(authority.revoke(authority.issue("revoked"))),
    }
    issued, identity = authority.issue("server"), authority.issue("joe")
    lines = f"tls_ticket_keys = [{str(key)!r}]\n"
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(site(issued, lines + rule.format(**files), app="secure:wsgi"))
            for name, rule in RULES.items()
        }
        for version, first in product(("1.2", "1.3"), servers):
            context = client(authority, version, identity=identity)
            with SecureWire(servers[first].address, context) as wire:
                wire.get("/")
                session = wire.secure.session
            for name, server in servers.items():
                with SecureWire(server.address, context, session=session) as wire:
                    facts = wire.get("/").json()["facts"]
                    assert wire.secure.session_reused is (name == first), (version, first, name)
                kind = "Resumed" if name == first else "Initial"
                shown = "" if name == "none" else identity.serial
                serial = facts.get("SSL_CLIENT_M_SERIAL", "").lstrip("0").upper()
                assert (facts["SSL_SESSION_RESUMED"], serial) == (kind, shown), (version, first, name)


def test_a_reload_that_changes_only_the_scheme_keeps_the_socket(authority: Authority) -> None:
    issued, port = authority.issue("server"), free_port()
    files = f"certfile = {str(issued.certificate)!r}\nkeyfile = {str(issued.key)!r}\n"
    with Site(f"bind = ['http://127.0.0.1:{port}']\n{files}", wait=False) as server:
        server.address = ("127.0.0.1", port)
        server.wait_ready()
        assert server.get("/hello").status == 200
        server.log.wait(r"\[WARNING\] A certificate is set \(from .*conf\.py:\d+\), but no address uses TLS")
        inode = _inode(server, port)
        server.configure(f"bind = ['https://127.0.0.1:{port}']\n{files}")
        server.hup()
        assert serial(server, client(authority)) == issued.serial
        assert _inode(server, port) == inode
        server.configure(f"bind = ['http://127.0.0.1:{port}?proxy_protocol=v1&proxy_protocol_required=on']\n{files}")
        server.hup()
        with server.connect() as wire:
            wire.send(b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n")
            assert wire.get("/hello").status == 200
        assert _inode(server, port) == inode


def _inode(server: Site, port: int) -> set[str]:
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table]
    return {row[9] for row in rows[1:] if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port}


def test_the_arbiter_reads_what_workers_may_not(authority: Authority) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    issued = authority.issue("server")
    issued.key.chmod(0o600)
    # The application may be where another user does not come.
    with site(issued, "user = 65534\npreload_app = True\n") as server:
        assert serial(server, client(authority)) == issued.serial


def test_a_handshake_that_is_slow_holds_up_no_other_client(authority: Authority) -> None:
    context = client(authority)
    lines = "worker_class = 'sync'\ntls_handshake_timeout = 2\n"
    with site(authority.issue("server"), lines) as server, server.connect() as slow:
        slow.send(b"\x16\x03\x01")
        began = time.monotonic()
        for _ in range(3):
            with SecureWire(server.address, context) as wire:
                assert wire.get("/hello").status == 200
        slow.ended()
        assert time.monotonic() - began >= 1
