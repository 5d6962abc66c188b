"""Slow clients: what the server does with one, and many at once, driven by one thread."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.harness.deadline import PATIENCE, until
from tests.harness.wire import Address, Wire, connect

if TYPE_CHECKING:
    from typing_extensions import Self


def until_let_go(wire: Wire, within: float) -> None:
    """The server has closed its end: of a connection whose client reads nothing and says nothing."""
    until(wire.is_let_go, "the client is given up", within=within, every=0.05)


def until_stuck(wire: Wire) -> None:
    """The kernel's buffers are full: the server waits for room."""
    sizes: list[int] = []

    def is_stuck() -> bool:
        sizes.append(wire.backlog())
        return len(sizes) > 4 and sizes[-1] > 0 and len(set(sizes[-4:])) == 1

    until(is_stuck, "the response fills the buffers", every=0.05)


@dataclass
class Client:
    """One member of the crowd: what it has still to say and what it has been told."""

    sock: socket.socket
    say: bytes
    born: float = field(default_factory=time.monotonic)
    heard: bytearray = field(default_factory=bytearray)
    ended: float | None = None

    @property
    def lifetime(self) -> float | None:
        return None if self.ended is None else self.ended - self.born


class Crowd:
    """`count` clients that send `say` at one byte per `every` seconds, and read whatever comes.

    With an empty `say` they are idle connections. `first` is sent at once, before the dribble begins.
    """

    def __init__(
        self, address: Address, count: int, say: bytes = b"", *, first: bytes = b"", every: float = 1.0
    ) -> None:
        self.every = every
        self.clients: list[Client] = []
        self._selector = selectors.DefaultSelector()
        self._stop = threading.Event()
        for _ in range(count):
            sock = connect(address, 10)
            if first:
                sock.sendall(first)
            sock.setblocking(False)
            client = Client(sock, say)
            self.clients.append(client)
            self._selector.register(sock, selectors.EVENT_READ, client)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)
        for client in self.clients:
            client.sock.close()
        self._selector.close()

    def open(self) -> list[Client]:
        return [client for client in self.clients if client.ended is None]

    def wait_all_ended(self, within: float = PATIENCE) -> list[float]:
        """How long each connection lived, once the server has ended them all."""
        until(
            lambda: not self.open(),
            f"all of {len(self.clients)} slow clients are cut off",
            within=within,
            every=0.02,
        )
        return [client.lifetime for client in self.clients if client.lifetime is not None]

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            now = time.monotonic()
            if now >= due:
                due = now + self.every
                for client in self.open():
                    self._speak(client)
            for key, _ in self._selector.select(min(0.05, max(0.0, due - time.monotonic()))):
                self._listen(key.data)

    def _speak(self, client: Client) -> None:
        if not client.say:
            return
        try:
            client.sock.send(client.say[:1])
        except BlockingIOError:
            return
        except OSError:
            self._end(client)
        client.say = client.say[1:]

    def _listen(self, client: Client) -> None:
        try:
            piece = client.sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        client.heard += piece
        if not piece:
            self._end(client)

    def _end(self, client: Client) -> None:
        if client.ended is None:
            client.ended = time.monotonic()
            self._selector.unregister(client.sock)
