"""TLS plan: certificates, authorities and protocol choices, in the core's terms."""

from __future__ import annotations

from typing import Literal

from tricorn.record import Record

Asks = Literal["none", "optional", "required"]

ASKS: tuple[Asks, ...] = ("none", "optional", "required")
"""Meanings of the numbers of `cert_reqs`."""
VERSIONS = ("1.2", "1.3")
ALPN = {"h1": "http/1.1", "h2": "h2"}
"""Names of `http_protocols` in the handshake (RFC 7301)."""


class Pair(Record):
    """A certificate with its chain, and its key: paths, which may be one."""

    certificate: str
    key: str


class Plan(Record):
    """TLS plan. Paths are absolute."""

    certificates: tuple[Pair, ...]
    ca_files: tuple[str, ...] = ()
    ca_data: bytes = b""
    """PEM."""
    crl_files: tuple[str, ...] = ()
    asks: Asks = "none"
    """Whether clients are asked for certificates."""
    min_version: str = VERSIONS[0]
    max_version: str = VERSIONS[-1]
    suites: tuple[str, ...] | None = None
    """IANA's names; None: all that there are."""
    alpn: tuple[str, ...] = (ALPN["h1"],)
    """Protocols to offer, preferred first."""
    require_sni: bool = False
    ticket_files: tuple[str, ...] = ()
    ticket_lifetime: float = 0
    """Seconds; 0: no resumption."""
    key_log: str | None = None


def is_encrypted(key: bytes) -> bool:
    """Whether it is a private key that a passphrase protects (PEM)."""
    return b"BEGIN ENCRYPTED PRIVATE KEY" in key or b"Proc-Type: 4,ENCRYPTED" in key


def encrypted(path: str) -> str:
    """Returns the error message about an encrypted key."""
    return (
        f"The key {path} is encrypted, and the server cannot ask for a passphrase. Decrypt it: openssl pkey -in "
        f"{path} -out plain.pem && chmod 600 plain.pem."
    )
