"""Clients of the control socket that mean no good, each for some seconds, as many at once as there are places."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress

from tricorn.arbiter.control.listener import MOST_CLIENTS
from tricorn.arbiter.control.session import MOST_REQUEST, MOST_VALUES

ANOTHER_USER = 65534


def open_client(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(1)
    while True:
        try:
            made.connect(path)
            return made
        except OSError as error:  # the backlog is full
            if error.errno not in (errno.EAGAIN, errno.ECONNREFUSED):
                raise
            time.sleep(0.001)


def asks(path: str, end: float) -> None:
    """No harm is meant: `health`, ten times a second."""
    with open_client(path) as client:
        while time.monotonic() < end:
            client.sendall(b'{"do":"health"}\n')
            client.recv(1 << 16)
            time.sleep(0.1)


def never_reads(path: str, end: float) -> None:
    """Asks for the longest answers, and reads none. A client that is dropped, or is read from no more, comes anew."""
    while time.monotonic() < end:
        clients = [open_client(path) for _ in range(MOST_CLIENTS)]
        for client in clients:
            client.setblocking(False)
        pause = min(end, time.monotonic() + 0.2)
        while time.monotonic() < pause:
            for client in clients:
                with suppress(OSError):
                    client.send(b'{"do":"workers"}\n{"do":"config"}\n' * 100)
            time.sleep(0.005)
        for client in clients:
            client.close()


def _pours(data: bytes) -> Callable[[str, float], None]:
    def pour(path: str, end: float) -> None:
        while time.monotonic() < end:
            with open_client(path) as client, suppress(OSError):
                client.sendall(data)
                client.recv(1 << 16)

    return pour


def nine_connections(path: str, end: float) -> None:
    """All places are taken, and others come and go without a pause."""
    held = [open_client(path) for _ in range(MOST_CLIENTS)]
    while time.monotonic() < end:
        with open_client(path) as late, suppress(OSError):
            late.recv(1000)
    for client in held:
        client.close()


def half_a_frame(path: str, end: float) -> None:
    """A frame byte by byte, on all places, and never the last byte."""
    frame = struct.pack(">I", MOST_REQUEST) + b"{" * (MOST_REQUEST - 1)
    clients = [open_client(path) for _ in range(MOST_CLIENTS)]
    at = 0
    while time.monotonic() < end and at < len(frame):
        for client in clients:
            with suppress(OSError):
                client.send(frame[at : at + 1])
        at += 1
    for client in clients:
        client.close()


def wrong_user(path: str, end: float) -> None:
    """A user that may look only (`control_read_only`) asks for what is refused, and logged, without a pause."""
    if os.geteuid() == 0:
        os.seteuid(ANOTHER_USER)
    with open_client(path) as client:
        while time.monotonic() < end:
            client.sendall(b'{"do":"scale","workers":6}\n' * 20)
            told = b""
            while told.count(b"\n") < 20:
                told += client.recv(1 << 16)
            kinds = {json.loads(line).get("kind") for line in told.splitlines()}
            assert os.geteuid() == 0 or kinds == {"denied"}, told[:200]


BRACES = b"{" * MOST_REQUEST
COSTLY = (b'{"do":"status","a":"' + b"\\u20ac" * ((MOST_REQUEST - 64) // 6) + b'"}\n')[:MOST_REQUEST]
VALUES = b'{"do":"status","a":[' + b",".join([b"1e9"] * (MOST_VALUES - 4)) + b"]}\n"
NESTED = b'{"do":"status","a":' + b"[" * (MOST_VALUES - 4) + b"]" * (MOST_VALUES - 4) + b"}\n"

CLIENTS: dict[str, Callable[[str, float], None]] = {
    "no harm: `health` ten times a second": asks,
    "never reads": never_reads,
    "64 KiB of braces": _pours(BRACES + b"\n"),
    "64 KiB of braces, no end": _pours(BRACES + b"{"),
    "64 KiB of escapes in a string": _pours(COSTLY),
    "500 values": _pours(VALUES),
    "500 levels": _pours(NESTED),
    "nine connections": nine_connections,
    "half a frame, byte by byte": half_a_frame,
    "wrong uid": wrong_user,
}
