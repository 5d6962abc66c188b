"""Certificates that this machine signs for itself, for development and for measurements.

The program `openssl` makes them, or the package `cryptography`: one of them is nearly everywhere, and a server needs
neither.
"""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from tricorn.errors import ConfigError

Key = Literal["ecdsa", "rsa"]

HERE = ("localhost", "127.0.0.1", "::1")
RSA_BITS = 2048
PATIENCE = 60
"""Seconds for the program."""
_NEW_KEY: dict[Key, tuple[str, ...]] = {
    "ecdsa": ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
    "rsa": ("-newkey", f"rsa:{RSA_BITS}"),
}


class SelfSigned(NamedTuple):
    """PEM."""

    certificate: str
    key: str


def make(names: Sequence[str], days: int, key: Key = "ecdsa") -> SelfSigned:
    """Raises ConfigError."""
    if program := shutil.which("openssl"):
        return _by_program(program, names, days, key)
    try:
        return _by_package(names, days, key)
    except ImportError:
        raise ConfigError(
            "A certificate is made by the program openssl or by the Python package cryptography, and neither is "
            "here. Install one of them (apt install openssl, pip install cryptography)."
        ) from None


def _by_program(program: str, names: Sequence[str], days: int, kind: Key) -> SelfSigned:
    with tempfile.TemporaryDirectory(prefix="tricorn-dev-cert-") as directory:  # only its owner may enter it
        config, key, certificate = (Path(directory, name) for name in ("config", "key.pem", "certificate.pem"))
        config.write_text(_CONFIG.format(names=",".join(f"{kind_of(name)}:{name}" for name in names)))
        command = [program, "req", "-x509", *_NEW_KEY[kind], "-nodes", "-sha256", "-days", str(days)]
        command += ["-config", str(config), "-keyout", str(key), "-out", str(certificate)]
        try:
            subprocess.run(
                command, check=True, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
            )
        except subprocess.CalledProcessError as error:
            raise ConfigError(f"{program} has made no certificate: {error.stderr.strip() or error}") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"{program} has made no certificate: {error}") from None
        return SelfSigned(certificate.read_text(), key.read_text())


def _by_package(names: Sequence[str], days: int, kind: Key) -> SelfSigned:
    """Raises ImportError."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    key = ec.generate_private_key(ec.SECP256R1()) if kind == "ecdsa" else rsa.generate_private_key(65537, RSA_BITS)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HERE[0])])
    now = datetime.datetime.now(datetime.timezone.utc)
    others: list[x509.GeneralName] = [
        x509.IPAddress(ipaddress.ip_address(name)) if kind_of(name) == "IP" else x509.DNSName(name) for name in names
    ]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(others), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return SelfSigned(certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode())


def kind_of(name: str) -> str:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "DNS"
    return "IP"


_CONFIG = """\
[req]
distinguished_name = subject
x509_extensions = extensions
prompt = no
[subject]
CN = localhost
[extensions]
subjectAltName = {names}
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
"""
