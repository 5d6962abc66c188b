"""TLS: an effect for each setting."""

from __future__ import annotations

import os
import ssl
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.compat.effects.common import raw
from tests.harness import Site
from tests.harness.certificates import Authority, Issued
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


def secure(directory: Path, more: str = "", **options: object) -> tuple[Site, Authority, Issued]:
    authority = Authority(directory)
    issued = authority.issue("server")
    lines = f"certfile = {str(issued.certificate)!r}\nkeyfile = {str(issued.key)!r}\n"
    return Site(lines + more, **options), authority, issued  # type: ignore[arg-type]


def serves(server: Site, context: ssl.SSLContext, **options: str) -> bool:
    """Whether a client with this context is served."""
    try:
        with SecureWire(server.address, context, **options) as wire:  # type: ignore[arg-type]
            return wire.get("/hello").status == 200
    except (OSError, AssertionError):  # TLS 1.3: it is told when it reads
        return False


def sees_certfile(directory: Path) -> None:
    site, authority, issued = secure(directory)
    with site as server, SecureWire(server.address, client(authority)) as wire:
        assert wire.get("/hello").status == 200
        assert wire.serial == issued.serial


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


def asking(directory: Path, cert_reqs: object, more: str = "") -> tuple[Site, Authority]:
    lines = f"ca_certs = {str(directory / 'authority.pem')!r}\ncert_reqs = {cert_reqs!r}\n{more}"
    site, authority, _ = secure(directory, lines)
    return site, authority


def sees_cert_reqs(directory: Path) -> None:
    for cert_reqs, without in ((0, True), ("CERT_OPTIONAL", True), (2, False)):
        site, authority = asking(directory, cert_reqs)
        with site as server:
            assert serves(server, client(authority)) is without
            assert serves(server, client(authority, identity=authority.issue("client")))


def sees_ca_certs(directory: Path) -> None:
    site, authority = asking(directory, 2)
    stranger = Authority(directory, "stranger")
    with site as server:
        assert serves(server, client(authority, identity=authority.issue("client")))
        assert not serves(server, client(authority, identity=stranger.issue("stranger's")))


def sees_tls_crl_file(directory: Path) -> None:
    authority = Authority(directory)
    good, bad = authority.issue("good"), authority.issue("bad")
    issued, crl = authority.issue("server"), authority.revoke(bad)
    lines = f"certificate = [{issued.pair!r}]\nca_certs = {str(authority.certificate)!r}\ncert_reqs = 2\n"
    with Site(f"{lines}tls_crl_file = [{str(crl)!r}]\n") as server:
        assert serves(server, client(authority, identity=good))
        assert not serves(server, client(authority, identity=bad))


def sees_tls_min_version(directory: Path) -> None:
    site, authority, _ = secure(directory, "tls_min_version = '1.3'\n")
    with site as server:
        assert serves(server, client(authority, "1.3"))
        assert not serves(server, client(authority, "1.2"))


def sees_ciphers(directory: Path) -> None:
    name = "ECDHE-ECDSA-AES256-GCM-SHA384"
    site, authority, _ = secure(directory, f"ciphers = '{name}:AES128-SHA'\n")
    with site as server:
        server.log.wait(r"\[WARNING\] ciphers = .*1 of its 2 TLS 1\.2 cipher suites are not supported")
        with SecureWire(server.address, client(authority, "1.2")) as wire:
            cipher = wire.secure.cipher()
            assert cipher is not None
            assert cipher[0] == name


def sees_tls_require_sni(directory: Path) -> None:
    site, authority, _ = secure(directory, "tls_require_sni = True\n")
    context = client(authority)
    context.check_hostname = False
    with site as server:
        assert serves(server, context, name="localhost")
        assert not serves(server, context, name="unknown.test")


def sees_tls_redirect(directory: Path) -> None:
    asked = request("GET", "/a?b=c", [("Host", "shop.test:8443")])
    site, _, _ = secure(directory)
    with site as server:
        assert raw(server, asked).startswith(b"HTTP/1.1 400 ")
    site, _, _ = secure(directory, "tls_redirect = True\n")
    with site as server:
        answer = raw(server, asked)
        assert answer.startswith(b"HTTP/1.1 308 ")
        assert b"https://shop.test:8443/a?b=c" in answer


def resumes(server: Site, context: ssl.SSLContext) -> bool:
    with SecureWire(server.address, context) as wire:
        wire.get("/hello")
        session = wire.secure.session
    with SecureWire(server.address, context, session=session) as wire:
        wire.get("/hello")
        return bool(wire.secure.session_reused)


def sees_tls_ticket_lifetime(directory: Path) -> None:
    for lifetime, expected in ((0, False), (60, True)):
        site, authority, _ = secure(directory, f"tls_ticket_lifetime = {lifetime}\n")
        with site as server:
            assert resumes(server, client(authority, "1.2")) is expected


def sees_tls_ticket_keys(directory: Path) -> None:
    key = directory / "ticket.key"
    key.write_bytes(b"k" * 47)
    site, authority, _ = secure(directory, f"tls_ticket_keys = [{str(key)!r}]\n", wait=False)
    with site as server:
        assert server.wait_exit() == 1
        assert "has 47 bytes; expected 48 or 80 random bytes" in server.log.text
    key.write_bytes(b"k" * 48)
    site, authority, _ = secure(directory, f"tls_ticket_keys = [{str(key)!r}]\n")
    with site as server:
        assert resumes(server, client(authority))


def sees_tls_reload(directory: Path) -> None:
    site, authority, issued = secure(directory, "tls_reload = 0.2\n")
    second = authority.issue("second")
    with site as server:
        for there, new in ((issued.certificate, second.certificate), (issued.key, second.key)):
            there.write_bytes(new.read_bytes())
        server.log.wait(rf"\[INFO\] TLS: .*serial {second.serial}")


def sees_tls_handshake_timeout(directory: Path) -> None:
    site, _, _ = secure(directory, "tls_handshake_timeout = 0.5\nheader_timeout = 60\n")
    with site as server, server.connect() as wire:
        began = time.monotonic()
        wire.send(b"\x16\x03\x01")
        wire.ended()
        assert 0.4 < time.monotonic() - began < 30


def sees_tls_pending_handshakes(directory: Path) -> None:
    """The oldest that has said nothing is closed for a newcomer."""
    site, authority, _ = secure(directory, "tls_pending_handshakes = 2\n")
    with site as server, server.connect() as first, server.connect() as second, server.connect() as third:
        for wire in (first, second, third):
            wire.send(b"\x16")
        first.ended()
        assert serves(server, client(authority))


def sees_tls_buffer_total(directory: Path) -> None:
    """Records that do not end."""
    site, authority, _ = secure(directory, "tls_buffer_total = '1M'\n")
    context = client(authority)
    with site as server, ExitStack() as stack:
        for _ in range(80):
            wire = stack.enter_context(SecureWire(server.address, context))
            os.write(wire.secure.fileno(), b"\x17\x03\x03\x40\x11" + bytes(16_000))
        server.log.wait(r"buffered more than 1048576 bytes \(tls_buffer_total\)")
        assert serves(server, context)


def sees_tls_key_log(directory: Path) -> None:
    keys = directory / "keys"
    site, authority, _ = secure(directory, f"tls_key_log = {str(keys)!r}\n")
    with site as server:
        server.log.wait(r"\[WARNING\] tls_key_log .*Readers of that file can decrypt the traffic")
        assert serves(server, client(authority, "1.3"))
        assert "CLIENT_HANDSHAKE_TRAFFIC_SECRET " in keys.read_text()


def sees_ssl_context(directory: Path) -> None:
    hook = (
        "def ssl_context(config, default_ssl_context_factory):\n"
        "    import ssl\n"
        "    context = default_ssl_context_factory()\n"
        "    context.minimum_version = ssl.TLSVersion.TLSv1_3\n"
        "    return context\n"
    )
    site, authority, _ = secure(directory, hook)
    with site as server:
        assert serves(server, client(authority, "1.3"))
        with pytest.raises(ssl.SSLError):
            SecureWire(server.address, client(authority, "1.2"))
