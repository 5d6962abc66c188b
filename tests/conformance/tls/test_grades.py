"""What scanners of TLS (testssl.sh, sslyze, SSL Labs) grade a server by: each row asks as they do."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509 import ocsp

from tests.conformance.tls.clients import ALL, CLOSING
from tests.conformance.tls.world import NAMES, World, serve
from tests.conftest import Pool
from tests.harness import Server, with_each
from tests.harness.tls import SecureWire, client

pytestmark = pytest.mark.beyond_reference("it has settings of OpenSSL's")

SERVED = (
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:"
    "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305"
)
"""All suites of TLS 1.2: each has forward secrecy, and none CBC, RC4 or 3DES."""
HEARTBEAT = 24


@pytest.fixture
def server(pool: Pool, world: World) -> Server:
    return serve(pool, "gthread", **world.settings())


def asked(server: Server, world: World, *options: str, text: str = CLOSING) -> str:
    """What `openssl s_client` says."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    command = [program, "s_client", "-connect", f"127.0.0.1:{server.port}", "-servername", NAMES["ecdsa"]]
    command += ["-CAfile", str(world.authority.certificate), *options]
    command += ["-ign_eof"] if text == CLOSING else []
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False, env={})
    return done.stdout + done.stderr


@with_each("version", ("-tls1", "-tls1_1"))
def test_old_versions_are_not_spoken(version: str, server: Server, world: World) -> None:
    said = asked(server, world, version, "-cipher", "ALL:@SECLEVEL=0")
    # Before its version a client of TLS 1.0 is found to know no signatures of today.
    assert re.search("alert (protocol version|handshake failure)", said), said


@with_each("key", tuple(NAMES))
def test_suites_have_forward_secrecy_and_authenticated_ciphers(key: str, server: Server, world: World) -> None:
    """All that OpenSSL has but those: none of them is accepted, static RSA, CBC, RC4 and anonymous ones included."""
    context = client(world.authority, "1.2")
    context.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    assert {"AES128-SHA", "ECDHE-RSA-AES128-SHA256", "DHE-RSA-AES128-GCM-SHA256"} <= {
        cipher["name"] for cipher in context.get_ciphers()
    }
    context.set_ciphers("ALL:COMPLEMENTOFALL:!" + SERVED.replace(":", ":!") + ":@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match=r"(?i)handshake.failure"):
        SecureWire(server.address, context, name=NAMES[key])
    for suite in SERVED.split(":"):
        if f"-{key.upper()}-" in suite:
            context.set_ciphers(suite)
            SecureWire(server.address, context, name=NAMES[key]).close()


def test_nothing_is_compressed_and_renegotiation_is_secure_or_refused(server: Server, world: World) -> None:
    """RFC 5746 and 7627: it is told that no handshake is mixed with another, and none is begun anew."""
    said = asked(server, world, "-tls1_2")
    assert "Secure Renegotiation IS supported" in said
    assert "Compression: NONE" in said
    assert "Extended master secret: yes" in said
    anew = asked(server, world, "-tls1_2", text="R\n")
    assert "RENEGOTIATING" in anew
    assert re.search("no renegotiation|unexpected message|alert", anew), anew


def test_a_heartbeat_is_not_answered(server: Server, world: World) -> None:
    """Heartbleed (CVE-2014-0160): a request that announces 16 KiB and has none."""
    request = bytes([HEARTBEAT]) + b"\x03\x03\x00\x03\x01\x40\x00"
    with SecureWire(server.address, client(world.authority, "1.2"), name=NAMES["ecdsa"]) as wire:
        os.write(wire.secure.fileno(), request)
        with pytest.raises((ssl.SSLError, AssertionError, OSError)):
            wire.get("/")
    with server.connect() as plain:
        plain.send(bytes.fromhex("16030100050100000001") + request)
        answer = plain.ended()
    assert answer[:1] == b"\x15", "an alert, and no heartbeat"
    assert len(answer) == 7


def test_groups_are_those_of_today(server: Server, world: World) -> None:
    said = asked(server, world, "-tls1_2", "-groups", "secp521r1:sect571r1:secp256k1")
    assert "handshake failure" in said
    for group in ("X25519", "prime256v1", "secp384r1"):
        assert "Verify return code: 0 (ok)" in asked(server, world, "-tls1_2", "-groups", group), group


def test_a_response_of_the_issuer_is_stapled(pool: Pool, world: World, tmp_path: Path) -> None:
    issued = world.authority.issue("stapled", (NAMES["ecdsa"],), file="stapled")
    (issued.certificate.parent / f"{issued.certificate.name}.ocsp").write_bytes(_good(issued.certificate, world))
    server = serve(pool, "gthread", certificate=[issued.pair])
    for version in ("-tls1_2", "-tls1_3"):
        said = asked(server, world, version, "-status")
        assert "OCSP Response Status: successful" in said, said
        assert "Cert Status: good" in said
    plain = serve(pool, "gthread", **world.settings())
    assert "OCSP response: no response sent" in asked(plain, world, "-status")


def _good(certificate: Path, world: World) -> bytes:
    """A response that the certificate is not revoked, signed by the authority."""
    subject = x509.load_pem_x509_certificate(certificate.read_bytes())
    issuer = x509.load_pem_x509_certificate(world.authority.certificate.read_bytes())
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = ocsp.OCSPResponseBuilder().add_response(
        cert=subject,
        issuer=issuer,
        algorithm=hashes.SHA256(),
        cert_status=ocsp.OCSPCertStatus.GOOD,
        this_update=now - datetime.timedelta(hours=1),
        next_update=now + datetime.timedelta(days=1),
        revocation_time=None,
        revocation_reason=None,
    )
    signed = builder.responder_id(ocsp.OCSPResponderEncoding.HASH, issuer).sign(world.authority.key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.DER)


@pytest.mark.skipif(not ALL, reason="TRICORN_TEST_TLS=1 asks for it")
@with_each("key", tuple(NAMES))
def test_sslyze_finds_mozillas_intermediate_configuration(key: str, server: Server, world: World) -> None:
    """All that is about the server, and not about the certificates of these tests: their issuer, their time."""
    program = shutil.which("sslyze")
    if program is None:
        pytest.skip("sslyze is not installed")
    command = [program, "--mozilla_config=intermediate", f"--sni={NAMES[key]}", f"127.0.0.1:{server.port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    found = re.findall(r"^ {8}\* (\w+): (.*)$", done.stdout, re.MULTILINE)
    assert [row for row in found if not row[0].startswith("certificate")] == [], done.stdout
    for row in (
        "OK - Compression disabled",
        "OK - Not vulnerable to Heartbleed",
        "OK - Not vulnerable to OpenSSL CCS injection",
        "OK - Not vulnerable, RSA cipher suites not supported",
        "Client Renegotiation DoS Attack:   OK - Not vulnerable",
        "Secure Renegotiation:              OK - Supported",
        "COMPLIANCE AGAINST TLS CONFIGURATION",
    ):
        assert row in done.stdout, done.stdout
