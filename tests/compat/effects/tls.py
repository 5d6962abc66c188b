"""TLS: an effect for each setting."""

from __future__ import annotations

import os
import ssl
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.compat.effects.common import raw
from tests.compat.effects.shared import HERE, shared
from tests.harness import Site, until
from tests.harness.certificates import Authority
from tests.harness.tls import SecureWire, client
from tests.harness.wire import request

OWN = (
    "certificate",
    "tls_crl_file",
    "tls_min_version",
    "tls_require_sni",
    "tls_redirect",
    "tls_ticket_lifetime",
    "tls_ticket_keys",
    "tls_reload",
    "tls_handshake_timeout",
    "tls_pending_handshakes",
    "tls_buffer_total",
    "tls_key_log",
)


class Secured(Site):
    """A server with a certificate of an authority of its own; `more` may name files beside the configuration."""

    def __init__(self, more: str = "", **options: Any) -> None:
        super().__init__("", **options)
        self.authority = Authority(self.directory)
        self.issued, self.revoked = self.authority.issue("server"), self.authority.issue("revoked")
        self.configure(f"{HERE}{CERTIFICATE_AND_KEY}{more}")

    def client(self, version: str | None = None, **options: Any) -> ssl.SSLContext:
        return client(self.authority, version, **options)


CERTIFICATE_AND_KEY = "certfile = f'{here}/server-certificate.pem'\nkeyfile = f'{here}/server-key.pem'\n"
CIPHER = "ECDHE-ECDSA-AES256-GCM-SHA384"


@shared
def secured() -> Site:
    return Secured("tls_ticket_lifetime = 60\n")


@shared
def asking() -> Site:
    return Secured(
        "ca_certs = f'{here}/authority.pem'\n"
        "cert_reqs = 'CERT_OPTIONAL'\n"
        f"ciphers = '{CIPHER}:AES128-SHA'\n"
        "tls_key_log = f'{here}/keys'\n"
        "tls_redirect = True\n"
    )


@shared
def mutual() -> Site:
    lines = "ca_certs = f'{here}/authority.pem'\ncert_reqs = 2\ntls_crl_file = [f'{here}/authority-crl.pem']\n"
    server = Secured(lines)
    server.authority.revoke(server.revoked)
    return server


@shared
def strict() -> Site:
    return Secured("tls_min_version = '1.3'\ntls_require_sni = True\ntls_buffer_total = '1M'\n")


@shared
def hasty() -> Site:
    return Secured("tls_ticket_lifetime = 0\ntls_handshake_timeout = 0.5\nheader_timeout = 60\n")


def serves(server: Site, context: ssl.SSLContext, **options: str) -> bool:
    """Whether a client with this context is served."""
    try:
        with SecureWire(server.address, context, **options) as wire:  # type: ignore[arg-type]
            return wire.get("/hello").status == 200
    except (OSError, AssertionError):  # TLS 1.3: it is told when it reads
        return False


def sees_certfile(secured: Secured) -> None:
    with SecureWire(secured.address, secured.client()) as wire:
        assert wire.get("/hello").status == 200
        assert wire.serial == secured.issued.serial


def sees_keyfile(directory: Path) -> None:
    """Without it the key is looked for in the file of the certificate."""
    authority = Authority(directory)
    issued = authority.issue("server")
    with Site(f"certfile = {str(issued.certificate)!r}\n", wait=False) as server:
        assert server.wait_exit() == 1
        assert str(issued.certificate) in server.log.text
    with issued.certificate.open("ab") as file:
        file.write(issued.key.read_bytes())
    with Site(f"certfile = {str(issued.certificate)!r}\n") as server:
        assert serves(server, client(authority))


def sees_certificate(directory: Path) -> None:
    authority = Authority(directory)
    first, second = authority.issue("first"), authority.issue("second", ("second.test",))
    with Site(f"certificate = [{first.pair!r}, {second.pair!r}]\n") as server:
        for name, issued in (("localhost", first), ("second.test", second)):
            with SecureWire(server.address, client(authority), name=name) as wire:
                assert wire.serial == issued.serial


def sees_cert_reqs(secured: Secured, asking: Secured, mutual: Secured) -> None:
    for server, without in ((secured, True), (asking, True), (mutual, False)):
        assert serves(server, server.client()) is without
        assert serves(server, server.client(identity=server.authority.issue("client")))


def sees_ca_certs(mutual: Secured, directory: Path) -> None:
    stranger = Authority(directory, "stranger")
    assert serves(mutual, mutual.client(identity=mutual.authority.issue("client")))
    assert not serves(mutual, mutual.client(identity=stranger.issue("stranger's")))


def sees_tls_crl_file(mutual: Secured) -> None:
    assert serves(mutual, mutual.client(identity=mutual.authority.issue("good")))
    assert not serves(mutual, mutual.client(identity=mutual.revoked))


def sees_tls_min_version(strict: Secured) -> None:
    assert serves(strict, strict.client("1.3"))
    assert not serves(strict, strict.client("1.2"))


def sees_ciphers(asking: Secured) -> None:
    asking.log.wait(r"\[WARNING\] ciphers = .*1 of its 2 TLS 1\.2 cipher suites are not supported")
    with SecureWire(asking.address, asking.client("1.2")) as wire:
        cipher = wire.secure.cipher()
        assert cipher is not None
        assert cipher[0] == CIPHER


def sees_tls_require_sni(strict: Secured) -> None:
    context = strict.client()
    context.check_hostname = False
    assert serves(strict, context, name="localhost")
    assert not serves(strict, context, name="unknown.test")


def sees_tls_redirect(secured: Secured, asking: Secured) -> None:
    asked = request("GET", "/a?b=c", [("Host", "shop.test:8443")])
    assert raw(secured, asked).startswith(b"HTTP/1.1 400 ")
    answer = raw(asking, asked)
    assert answer.startswith(b"HTTP/1.1 308 ")
    assert b"https://shop.test:8443/a?b=c" in answer


def resumes(server: Site, context: ssl.SSLContext) -> bool:
    with SecureWire(server.address, context) as wire:
        wire.get("/hello")
        session = wire.secure.session
    with SecureWire(server.address, context, session=session) as wire:
        wire.get("/hello")
        return bool(wire.secure.session_reused)


def sees_tls_ticket_lifetime(secured: Secured, hasty: Secured) -> None:
    assert resumes(secured, secured.client("1.2"))
    assert not resumes(hasty, hasty.client("1.2"))


def sees_tls_ticket_keys() -> None:
    server = Secured("tls_ticket_keys = [f'{here}/ticket.key']\n", wait=False)
    key = server.directory / "ticket.key"
    key.write_bytes(b"k" * 47)
    with server:
        assert server.wait_exit() == 1
        assert "has 47 bytes; expected 48 or 80 random bytes" in server.log.text
    server = Secured("tls_ticket_keys = [f'{here}/ticket.key']\n")
    (server.directory / "ticket.key").write_bytes(b"k" * 48)
    with server:
        assert resumes(server, server.client())


def sees_tls_reload() -> None:
    with Secured("tls_reload = 0.2\n") as server:
        second = server.authority.issue("second")
        for there, new in ((server.issued.certificate, second.certificate), (server.issued.key, second.key)):
            there.write_bytes(new.read_bytes())
        server.log.wait(rf"\[INFO\] TLS: .*serial {second.serial}")


def sees_tls_handshake_timeout(hasty: Secured) -> None:
    with hasty.connect() as wire:
        began = time.monotonic()
        wire.send(b"\x16\x03\x01")
        wire.ended()
        assert 0.4 < time.monotonic() - began < 30


def sees_tls_pending_handshakes() -> None:
    """One that has said nothing is closed for a newcomer, once the kernel has let it in (TCP_DEFER_ACCEPT)."""
    with Secured("tls_pending_handshakes = 2\ntls_handshake_timeout = 600\n") as server, ExitStack() as stack:
        silent = [stack.enter_context(server.connect()) for _ in range(3)]

        def makes_room() -> bool:
            assert serves(server, server.client())
            return not all(wire.still_open(0.05) for wire in silent)

        until(makes_room, "a silent one is closed")


def sees_tls_buffer_total(strict: Secured) -> None:
    """Records that do not end."""
    context = strict.client()
    with ExitStack() as stack:
        for _ in range(80):
            wire = stack.enter_context(SecureWire(strict.address, context))
            os.write(wire.secure.fileno(), b"\x17\x03\x03\x40\x11" + bytes(16_000))
        strict.log.wait(r"buffered more than 1048576 bytes \(tls_buffer_total\)")
    assert serves(strict, context)


def sees_tls_key_log(asking: Secured) -> None:
    asking.log.wait(r"\[WARNING\] tls_key_log .*Readers of that file can decrypt the traffic")
    assert serves(asking, asking.client("1.3"))
    assert "CLIENT_HANDSHAKE_TRAFFIC_SECRET " in (asking.directory / "keys").read_text()


def sees_ssl_context() -> None:
    hook = (
        "def ssl_context(config, default_ssl_context_factory):\n"
        "    import ssl\n"
        "    context = default_ssl_context_factory()\n"
        "    context.minimum_version = ssl.TLSVersion.TLSv1_3\n"
        "    return context\n"
    )
    with Secured(hook) as server:
        assert serves(server, server.client("1.3"))
        with pytest.raises(ssl.SSLError):
            SecureWire(server.address, server.client("1.2"))
