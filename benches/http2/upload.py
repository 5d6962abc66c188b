"""An upload over a network with a delay: a relay holds each byte back for as long as it would travel."""

from __future__ import annotations

import collections
import selectors
import socket
import struct
import threading
import time

from benches.harness.process import DidNotServe
from benches.http2.frames import (
    ACK,
    BEGIN,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    INITIAL_WINDOW,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    fields,
    frame,
    frames,
    head,
)

WINDOW = 65_535
PIECE = 16_384


class Relay:
    """`with Relay(port, delay) as relay:` passes bytes on between `relay.port` and a server, so many seconds late."""

    def __init__(self, server: int, delay: float) -> None:
        self.server, self.delay = server, delay
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self) -> Relay:  # noqa: PYI034 (typing.Self is younger than Python 3.10)
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()

    def accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.server))
            for ends in ((near, far), (far, near)):
                ends[0].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source: socket.socket, target: socket.socket) -> None:
        """What has come is passed on when its time is there; the network takes any number of bytes."""
        under_way: collections.deque[tuple[float, bytes]] = collections.deque()
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            ended = False
            while under_way or not ended:
                wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
                try:
                    if ended:
                        time.sleep(wait or 0)
                    elif selector.select(wait):
                        piece = source.recv(1 << 18)
                        ended = not piece
                        under_way.append((time.monotonic() + self.delay, piece))
                    while under_way and under_way[0][0] <= time.monotonic():
                        _, piece = under_way.popleft()
                        if not piece:
                            target.shutdown(socket.SHUT_WR)
                        target.sendall(piece)
                except OSError:
                    target.close()
                    return


def upload(port: int, length: int) -> float:
    """Sends so many bytes as fast as the windows let them go. Seconds until the answer is there."""
    start = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = fields("/count", "POST", [("content-length", str(length))])
        connection.sendall(BEGIN + head(1, request, END_HEADERS))
        windows, sent, answer = {0: WINDOW, 1: WINDOW}, 0, b""
        content = bytes(PIECE)
        came = frames(connection)
        while True:
            while sent < length and (room := min(*windows.values(), PIECE, length - sent)) > 0:
                sent += room
                connection.sendall(frame(DATA, END_STREAM if sent == length else 0, 1, content[:room]))
                windows = {stream: window - room for stream, window in windows.items()}
            kind, flags, stream, payload = next(came, (GOAWAY, 0, 0, b""))
            if kind in (RST_STREAM, GOAWAY):
                raise DidNotServe(f"an upload of {length} bytes ended after {sent}")
            if kind == WINDOW_UPDATE and stream in windows:
                windows[stream] += int.from_bytes(payload, "big")
            if kind == SETTINGS and not flags & ACK:
                connection.sendall(frame(SETTINGS, ACK, 0))
                given = dict(struct.iter_unpack(">HI", payload))
                windows[1] += given.get(INITIAL_WINDOW, WINDOW) - WINDOW
            if stream == 1 and kind == DATA:
                answer += payload
            if stream == 1 and kind < 2 and flags & END_STREAM:
                break
    if answer != b"%d" % length:
        raise DidNotServe(f"said {answer[:50]!r} to {length} bytes")
    return time.perf_counter() - start
