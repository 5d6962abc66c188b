"""Headers of the PROXY protocol, as balancers send them."""

from __future__ import annotations

import socket
import struct

LINE = b"PROXY TCP4 203.0.113.9 198.51.100.1 4711 443\r\n"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL, PROXY = 0x20, 0x21
TCP4, TCP6 = 0x11, 0x21


def value(kind: int, content: bytes) -> bytes:
    """A typed value of version 2."""
    return struct.pack("!BH", kind, len(content)) + content


def header(
    *values: bytes, source: str = "203.0.113.9", destination: str = "198.51.100.1", command: int = PROXY
) -> bytes:
    """Version 2, from port 4711 to 443."""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    ends = [socket.inet_pton(family, address) for address in (source, destination)]
    rest = b"".join((*ends, struct.pack("!HH", 4711, 443), *values))
    return SIGNATURE + struct.pack("!BBH", command, TCP6 if ":" in source else TCP4, len(rest)) + rest
