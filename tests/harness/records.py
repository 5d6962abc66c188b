"""A client of TLS 1.3 that seals its records itself: empty ones, updates of its keys, a byte in each."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import ssl
import struct
import tempfile
from typing import TYPE_CHECKING

from tests.harness.tls import SecureWire, client

if TYPE_CHECKING:
    from tests.harness.certificates import Authority
    from tests.harness.wire import Address

APPLICATION_DATA, HANDSHAKE = 23, 22
KEY_UPDATE = b"\x18\x00\x00\x01\x00"
"""Without asking for one in return (RFC 8446 section 4.6.3)."""


class Records(SecureWire):
    """Shaken hands on by OpenSSL, which reads as well. What is sent goes to `raw`, sealed here."""

    def __init__(self, address: Address, authority: Authority) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

        context = client(authority, "1.3")
        with tempfile.NamedTemporaryFile() as log:
            context.keylog_filename = log.name
            super().__init__(address, context)
            line = next(line for line in log.read().decode().splitlines() if line.startswith("CLIENT_TRAFFIC_SECRET_0"))
        suite = self.secure.cipher()
        assert suite is not None
        name = suite[0]
        self._hash = "sha384" if name.endswith("384") else "sha256"
        self._kind = ChaCha20Poly1305 if "CHACHA20" in name else AESGCM
        self._size = 16 if "AES_128" in name else 32
        self._secret = bytes.fromhex(line.split()[2])
        self._begin_keys()
        self.raw = socket.socket(fileno=os.dup(self.sock.fileno()))

    def close(self) -> None:
        self.raw.close()
        super().close()

    def seal(self, content: bytes, kind: int = APPLICATION_DATA) -> bytes:
        """A record (RFC 8446 section 5.2)."""
        inner = content + bytes([kind])
        head = struct.pack("!BHH", APPLICATION_DATA, 0x0303, len(inner) + 16)
        nonce = (int.from_bytes(self._iv, "big") ^ self._number).to_bytes(12, "big")
        self._number += 1
        return head + self._key.encrypt(nonce, inner, head)

    def update(self) -> bytes:
        """A record that changes the keys of those that follow."""
        record = self.seal(KEY_UPDATE, HANDSHAKE)
        self._secret = self._expand(b"traffic upd", hashlib.new(self._hash).digest_size)
        self._begin_keys()
        return record

    def told(self) -> str:
        """The alert that the server ends the session with, in OpenSSL's words."""
        try:
            while self.secure.recv(1 << 16):
                pass
        except ssl.SSLError as error:
            return error.reason or ""
        return "the end without an alert"

    def _begin_keys(self) -> None:
        self._key = self._kind(self._expand(b"key", self._size))
        self._iv = self._expand(b"iv", 12)
        self._number = 0

    def _expand(self, label: bytes, length: int) -> bytes:
        """HKDF-Expand-Label (RFC 8446 section 7.1)."""
        label = b"tls13 " + label
        told = struct.pack("!HB", length, len(label)) + label + b"\0"
        # Nothing that is asked for is longer than a block.
        return hmac.new(self._secret, told + b"\x01", self._hash).digest()[:length]
