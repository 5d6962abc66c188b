"""Stand-in for `ssl.SSLSocket` and `ssl.SSLObject` in tornado and aiohttp applications."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


class Session:
    """The part of `ssl.SSLSocket` that applications use."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        """`facts`: those of `Call.tls`."""
        self._facts = facts

    def getpeercert(self, binary_form: bool = False) -> dict[str, Any] | bytes | None:
        """The client's certificate; None if it has shown none."""
        certificate: bytes | None = self._facts["peer_certificate"]
        return certificate if certificate is None or binary_form else _decoded(certificate)

    def cipher(self) -> tuple[str, str, int]:
        name, version, bits = self._facts["cipher"]
        return name, version, bits

    def version(self) -> str:
        return str(self._facts["version"])

    def selected_alpn_protocol(self) -> str | None:
        protocol: str | None = self._facts["alpn"]
        return protocol


def extra(facts: Mapping[str, Any], name: str) -> Any:
    """Returns what asyncio's `get_extra_info` has under this name."""
    session = Session(facts)
    if name == "peercert":
        return session.getpeercert()
    return session.cipher() if name == "cipher" else session


def _decoded(certificate: bytes) -> dict[str, Any]:
    """Decodes a certificate as `SSLSocket.getpeercert` does. Python's own decoder reads files only."""
    import _ssl
    import ssl

    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, ssl.DER_cert_to_PEM_cert(certificate).encode())
        found: dict[str, Any] = _ssl._test_decode_cert(f"/proc/self/fd/{descriptor}")  # type: ignore[attr-defined]
    finally:
        os.close(descriptor)
    return found
