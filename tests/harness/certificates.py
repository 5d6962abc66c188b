"""Authorities and certificates of tests, made on the spot."""

from __future__ import annotations

import datetime
import ipaddress
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Kind = Literal["ecdsa", "rsa"]
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

DAY = datetime.timedelta(days=1)
LOCAL = ("localhost", "127.0.0.1")


class Issued(NamedTuple):
    """Files (PEM), and the serial number as OpenSSL writes it."""

    certificate: Path
    key: Path
    serial: str

    @property
    def pair(self) -> str:
        """As the setting `certificate` has it."""
        return f"{self.certificate}:{self.key}"


class Authority:
    """Signs certificates, and revokes them. Its own is `certificate`, with `key`."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self.directory = directory
        self.name = name
        self.certificate = directory / f"{name}.pem"
        self.key = _key("ecdsa", f"{directory}/{name}")
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._revoked: list[x509.RevokedCertificate] = []
        own = _builder(self._subject, self._subject, self.key, _now() - DAY, _now() + 10 * DAY)
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        own = own.add_extension(_usage(signs=True), critical=True)
        self.certificate.write_bytes(_pem(own.sign(self.key, hashes.SHA256())))

    def issue(
        self,
        name: str,
        names: tuple[str, ...] = LOCAL,
        *,
        kind: Kind = "ecdsa",
        days: float = 5,
        file: str | None = None,
    ) -> Issued:
        """A certificate for a server and a client alike; `days` may be over (negative)."""
        key = _key(kind, name) if kind == "rsa" else _fresh()
        end = _now() + days * DAY
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Tests, Inc."),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        builder = _builder(subject, self._subject, key, min(_now(), end) - DAY, end)
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(each) for each in names]), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        made = builder.sign(self.key, hashes.SHA256())
        files = [self.directory / f"{file or name}-{what}.pem" for what in ("certificate", "key")]
        files[0].write_bytes(_pem(made))
        files[1].write_bytes(private(key))
        return Issued(files[0], files[1], f"{made.serial_number:X}")

    def revoke(self, *issued: Issued) -> Path:
        """The list of all that are revoked."""
        for each in issued:
            revoked = x509.RevokedCertificateBuilder().serial_number(int(each.serial, 16)).revocation_date(_now() - DAY)
            self._revoked.append(revoked.build())
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._subject)
        builder = builder.last_update(_now() - DAY).next_update(_now() + 5 * DAY)
        builder = builder.add_extension(x509.CRLNumber(len(self._revoked)), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
        )
        for one in self._revoked:
            builder = builder.add_revoked_certificate(one)
        file = self.directory / f"{self.name}-crl.pem"
        file.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return file


def private(key: PrivateKey, password: bytes | None = None) -> bytes:
    plain = serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def encrypted(key: Path, password: bytes = b"secret") -> bytes:
    """A key of a file, protected by a passphrase."""
    found = serialization.load_pem_private_key(key.read_bytes(), None)
    assert isinstance(found, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey)
    return private(found, password)


@cache
def _key(kind: Kind, name: str) -> PrivateKey:
    """The same for the same name: RSA takes a second to find."""
    return rsa.generate_private_key(65537, 2048) if kind == "rsa" else _fresh()


def _fresh() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: PrivateKey, begin: datetime.datetime, end: datetime.datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number() | 1 << 158).not_valid_before(begin).not_valid_after(end)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=signs, crl_sign=signs, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.RFC822Name(name) if "@" in name else x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)
