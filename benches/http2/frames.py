"""Frames of HTTP/2 by hand (RFC 9113, section 6): libraries refuse to send most of what an attacker sends."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator

from hpack import Encoder

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW = 4
"""SETTINGS_INITIAL_WINDOW_SIZE"""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD = 9
Field = tuple[str, str]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def setting(name: int, value: int) -> bytes:
    return struct.pack(">HI", name, value)


BEGIN = PREFACE + frame(SETTINGS, 0, 0)


def fields(path: str = "/", method: str = "GET", more: Iterable[Field] = ()) -> list[Field]:
    return [(":method", method), (":scheme", "http"), (":authority", "t"), (":path", path), *more]


def block(of: Iterable[Field]) -> bytes:
    """A header block that leaves the table of the connection as it was."""
    return bytes(Encoder().encode([(name, value, True) for name, value in of], huffman=False))


def head(stream: int, of: Iterable[Field], flags: int = END_STREAM | END_HEADERS) -> bytes:
    return frame(HEADERS, flags, stream, block(of))


def frames(connection: socket.socket) -> Iterator[tuple[int, int, int, bytes]]:
    """Kind, flags, stream and payload of what comes, until the connection ends."""
    data = bytearray()
    while piece := connection.recv(65_536):
        data += piece
        while len(data) >= HEAD and len(data) >= HEAD + (length := int.from_bytes(data[:3], "big")):
            kind, flags, stream = struct.unpack(">BBI", data[3:HEAD])
            yield kind, flags, stream, bytes(data[HEAD : HEAD + length])
            del data[: HEAD + length]
