"""The other clients. They run until they are told to stop, and print "ready" once they disturb.

python -m benches.beside.others slow PORT HEADS BODIES: at a byte a second; a closed connection is opened again
python -m benches.beside.others uploads PORT CLIENTS MEBIBYTES PATH: bodies one after another, and the bytes of each
"""

from __future__ import annotations

import itertools
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator

SLOW_HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"a" * 3600
BODY_HEAD = b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
PIECE = bytes(1 << 20)


class Dribbler:
    def __init__(self, port: int, at_once: bytes, slowly: Iterator[int]) -> None:
        self.port, self.at_once, self.slowly = port, at_once, slowly
        self.socket: socket.socket | None = None

    def tick(self) -> None:
        if self.socket is None:
            self.socket = socket.socket()
            self.socket.setblocking(False)
            # A backlog that is full leaves the connection pending; the next second finds out.
            self.socket.connect_ex(("127.0.0.1", self.port))
            self.pending = self.at_once
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


def slow(port: int, heads: int, bodies: int) -> None:
    dribblers = [Dribbler(port, b"", itertools.cycle(SLOW_HEAD)) for _ in range(heads)]
    dribblers += [Dribbler(port, BODY_HEAD % (b"/count", 100_000), itertools.cycle(b"b")) for _ in range(bodies)]
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


def uploads(port: int, clients: int, mebibytes: int, path: str) -> None:
    sent = [0] * clients

    def upload(number: int) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(BODY_HEAD % (path.encode(), mebibytes << 20))
            for _ in range(mebibytes):
                connection.sendall(PIECE)
                sent[number] += len(PIECE)
            while connection.recv(4096):
                pass

    def again(number: int) -> None:
        while True:
            try:
                upload(number)
            except OSError:
                time.sleep(0.05)

    for number in range(clients):
        threading.Thread(target=again, args=(number,), daemon=True).start()
    print("ready", flush=True)
    signal.sigwait({signal.SIGTERM})
    print(*sent, flush=True)


if __name__ == "__main__":
    port, clients, size = map(int, sys.argv[2:5])
    if sys.argv[1] == "uploads":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        uploads(port, clients, size, sys.argv[5])
    else:
        slow(port, clients, size)
