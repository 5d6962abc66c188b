"""What an application was told of the handshake, in one shape for every interface: what the server has seen."""

from __future__ import annotations

import json
import ssl
from typing import Any, NamedTuple

from cryptography import x509

from tests.conformance.tls.world import INTERFACES, World
from tests.harness.certificates import Issued

VERSIONS = {0x0303: "TLSv1.2", 0x0304: "TLSv1.3"}
SUITES = {
    0x1301: "TLS_AES_128_GCM_SHA256",
    0x1302: "TLS_AES_256_GCM_SHA384",
    0x1303: "TLS_CHACHA20_POLY1305_SHA256",
    0xC02B: "ECDHE-ECDSA-AES128-GCM-SHA256",
    0xC02C: "ECDHE-ECDSA-AES256-GCM-SHA384",
    0xCCA9: "ECDHE-ECDSA-CHACHA20-POLY1305",
    0xC02F: "ECDHE-RSA-AES128-GCM-SHA256",
    0xC030: "ECDHE-RSA-AES256-GCM-SHA384",
    0xCCA8: "ECDHE-RSA-CHACHA20-POLY1305",
}
"""IANA's numbers, which ASGI has, and OpenSSL's names, which all others have."""


class Told(NamedTuple):
    version: str
    cipher: str
    client: str | None
    """The serial number of the client's certificate; None: it has shown none."""
    server: str | None = None
    """That of the server's; None: this interface does not tell."""
    resumed: bool | None = None
    """None: this interface does not tell."""


def told(alias: str, text: str) -> Told:
    """From the answer of `tests/apps/secure.py`."""
    facts = json.loads(text)["facts"]
    return {"wsgi": _by_wsgi, "asgi": _by_asgi}.get(INTERFACES[alias], _by_objects)(facts)


def wrong(alias: str, text: str, version: str, key: str, client: Issued | None, resumed: bool, world: World) -> str:
    """What the application was told that is not so; empty: nothing."""
    try:
        seen = told(alias, text)
    except (ValueError, KeyError, TypeError) as error:
        return f"{text!r}: {error!r}"
    serial = None if client is None else client.serial
    # The key of the server's certificate is part of a suite's name in TLS 1.2 only.
    kind = f"ECDHE-{key.upper()}-" if version == "1.2" else "TLS_"
    expected = {
        "version": (seen.version, f"TLSv{version}"),
        "cipher": (seen.cipher[: len(kind)], kind),
        "client": (seen.client, serial),
        "server": (seen.server, getattr(world, key).serial),
        "resumed": (seen.resumed, resumed),
    }
    silent = {name for name in ("server", "resumed") if getattr(seen, name) is None}
    return ", ".join(
        f"{name}: {found}, not {right}"
        for name, (found, right) in expected.items()
        if found != right and name not in silent
    )


def _by_wsgi(facts: dict[str, Any]) -> Told:
    client = facts.get("SSL_CLIENT_M_SERIAL")
    verified = facts["SSL_CLIENT_VERIFY"]
    if verified != ("NONE" if client is None else "SUCCESS"):
        raise ValueError(f"SSL_CLIENT_VERIFY is {verified}")
    return Told(
        facts["SSL_PROTOCOL"],
        facts["SSL_CIPHER"],
        client and client.lstrip("0").upper(),
        _serial(facts["SSL_SERVER_CERT"]),
        {"Initial": False, "Resumed": True}[facts["SSL_SESSION_RESUMED"]],
    )


def _by_asgi(facts: dict[str, Any]) -> Told:
    chain = facts["client_cert_chain"]
    return Told(
        VERSIONS[facts["tls_version"]],
        SUITES[facts["cipher_suite"]],
        _serial(chain[0]) if chain else None,
        _serial(facts["server_cert"]),
    )


def _by_objects(facts: dict[str, Any]) -> Told:
    """tornado and aiohttp have what `ssl.SSLSocket` answers."""
    client = facts["peercert"]
    cipher, version, _ = facts["cipher"]
    return Told(version, cipher, client and client["serialNumber"].lstrip("0"))


def _serial(pem: str) -> str:
    ssl.PEM_cert_to_DER_cert(pem)  # as strict as Python's own clients
    return f"{x509.load_pem_x509_certificate(pem.encode()).serial_number:X}"
