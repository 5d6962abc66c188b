"""Slow clients: python -m benches.slow_clients.dribble PORT HEADS BODIES

HEADS connections send a request head at one byte a second, BODIES connections send a head at once and the body at
one byte a second. A connection that the server closes is opened again. Runs until it is told to stop.
"""

from __future__ import annotations

import itertools
import socket
import sys
import time
from collections.abc import Iterator

HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"a" * 3600
BODY_HEAD = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"


class Dribbler:
    def __init__(self, port: int, at_once: bytes, slowly: Iterator[int]) -> None:
        self.port, self.at_once, self.slowly = port, at_once, slowly
        self.socket: socket.socket | None = None

    def connect(self) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)
        # A backlog that is full leaves the connection pending; the next second finds out.
        self.socket.connect_ex(("127.0.0.1", self.port))
        self.pending = self.at_once

    def tick(self) -> None:
        if self.socket is None:
            self.connect()
            return
        try:
            self.pending += bytes([next(self.slowly)])
            self.pending = self.pending[self.socket.send(self.pending) :]
            if self.socket.recv(4096) == b"":
                self.close()
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
        self.socket = None


def main() -> None:
    port, heads, bodies = (int(word) for word in sys.argv[1:])
    dribblers = [Dribbler(port, b"", itertools.cycle(HEAD)) for _ in range(heads)]
    dribblers += [Dribbler(port, BODY_HEAD, itertools.cycle(b"b")) for _ in range(bodies)]
    for second in itertools.count(1):
        until = time.monotonic() + 1
        for number, dribbler in enumerate(dribblers):
            dribbler.tick()
            # Spread over the second, so that no burst disturbs the healthy client.
            if number % 20 == 19:
                time.sleep(max(0.0, (until - time.monotonic()) * 20 / (len(dribblers) - number + 20)))
        if second == 2:
            print("ready", flush=True)
        time.sleep(max(0.0, until - time.monotonic()))


if __name__ == "__main__":
    main()
