"""`tricorn dev-cert`: a certificate that this machine signs for itself, so that HTTPS can be tried.

The program `openssl` makes it, or the package `cryptography`: one of them is nearly everywhere, and a server needs
neither.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tricorn.errors import ConfigError

HERE = ("localhost", "127.0.0.1", "::1")
MOST_DAYS = 825
"""Apple's clients refuse certificates that last longer."""
PATIENCE = 60
"""Seconds for the program."""
_NAME = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?", re.IGNORECASE)


def main(words: Sequence[str]) -> int:
    given = _parser().parse_args(words)
    try:
        names = [_checked(name) for name in dict.fromkeys((*HERE, *given.names))]
        made = make(names, given.days)
        if given.out is None:
            sys.stdout.write(made)
            return 0
        _write(given.out, made)
    except ConfigError as error:
        return error.report()
    print(f"{given.out}: certificate and key for {', '.join(names)}, {given.days} days.")
    print(f"Serve with it:  tricorn --certfile {given.out} -b https://127.0.0.1:8443 main:app")
    print(f"Ask:            curl --cacert {given.out} https://localhost:8443/")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tricorn dev-cert",
        description="Prints a certificate and its key (PEM) for localhost, 127.0.0.1, ::1 and the names given. It is "
        "signed by itself, for development only: clients must be told to trust it.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="more names or addresses")
    parser.add_argument("-o", "--out", metavar="FILE", help="write to a file that only its owner may read")
    parser.add_argument("--days", type=_days, default=30, metavar="DAYS", help="how long it is valid (30)")
    return parser


def make(names: Sequence[str], days: int) -> str:
    """The certificate, then its key. Raises ConfigError."""
    if program := shutil.which("openssl"):
        return _by_program(program, names, days)
    try:
        return _by_package(names, days)
    except ImportError:
        raise ConfigError(
            "A certificate is made by the program openssl or by the Python package cryptography, and neither is "
            "here. Install one of them (apt install openssl, pip install cryptography)."
        ) from None


def _by_program(program: str, names: Sequence[str], days: int) -> str:
    with tempfile.TemporaryDirectory(prefix="tricorn-dev-cert-") as directory:  # only its owner may enter it
        config, key, certificate = (Path(directory, name) for name in ("config", "key.pem", "certificate.pem"))
        config.write_text(_CONFIG.format(names=",".join(f"{_kind(name)}:{name}" for name in names)))
        command = [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += [
            "-sha256",
            "-days",
            str(days),
            "-config",
            str(config),
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        ]
        try:
            subprocess.run(
                command, check=True, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
            )
        except subprocess.CalledProcessError as error:
            raise ConfigError(f"{program} has made no certificate: {error.stderr.strip() or error}") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"{program} has made no certificate: {error}") from None
        return certificate.read_text() + key.read_text()


def _by_package(names: Sequence[str], days: int) -> str:
    """Raises ImportError."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HERE[0])])
    now = datetime.datetime.now(datetime.timezone.utc)
    others: list[x509.GeneralName] = [
        x509.IPAddress(ipaddress.ip_address(name)) if _kind(name) == "IP" else x509.DNSName(name) for name in names
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
    return (certificate.public_bytes(serialization.Encoding.PEM) + private).decode()


def _write(path: str, text: str) -> None:
    try:
        if os.path.exists(path):
            raise ConfigError(f"{path} exists: remove it, or name another file.")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from None


def _checked(name: str) -> str:
    if _kind(name) == "IP" or _NAME.fullmatch(name):
        return name
    raise ConfigError(f"Expected a name such as app.test or *.app.test, or an IP address, got {name!r}.")


def _kind(name: str) -> str:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "DNS"
    return "IP"


def _days(text: str) -> int:
    days = int(text) if text.isascii() and text.isdecimal() else 0
    if not 0 < days <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"from 1 to {MOST_DAYS} days, not {text!r}")
    return days


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
