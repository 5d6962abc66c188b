"""Steady load from clients that count every request that did not end as it should."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from tests.harness.deadline import PATIENCE, until
from tests.harness.wire import Address, Reply, Silent, Wire

if TYPE_CHECKING:
    from typing_extensions import Self

CLOSE = (("Connection", "close"),)
Told = TypeVar("Told")
PAUSE = 0.01
"""Seconds in which a connection is idle, as some are at any moment. Without it clients take the server's processor."""


class Clients(Generic[Told]):
    """A context manager: inside it threads ask, each until `stop`, and note in `told` what they were told."""

    def __init__(self, told: Told, clients: Sequence[Callable[[], None]]) -> None:
        self._told = told
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=client, daemon=True) for client in clients]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def answers(self) -> int:
        """How many requests were answered so far."""
        raise NotImplementedError

    def settle(self, answers: int, *, within: float = PATIENCE) -> None:
        """Waits until there have been that many answers more: the load is in full swing."""
        target = self.answers() + answers
        until(lambda: self.answers() >= target, f"{answers} more are answered: {self._told}", within=within)

    def stop(self) -> Told:
        self._stop.set()
        return self.join()

    def join(self, within: float = PATIENCE) -> Told:
        for thread in self._threads:
            thread.join(within)
            assert not thread.is_alive(), "a client of the load hangs"
        return self._told


@dataclass
class Tally:
    answered: int = 0
    reconnects: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


class Load(Clients[Tally]):
    """`clients` threads, each with a keep-alive connection, asking for `target` with a pause between two requests.

    A clean end before a response's first byte is a reconnect, as any client library treats it. Everything else
    that is not a complete 200 is a failure. With `fields=CLOSE` every request has a connection of its own.
    After `leaving()` a connection that is not accepted any more is refusal.
    """

    def __init__(
        self,
        address: Address,
        target: str = "/hello",
        *,
        clients: int = 8,
        check: Callable[[Reply], bool] = lambda reply: reply.status == 200,
        timeout: float = 15.0,
        fields: Sequence[tuple[str, str]] = (),
        pause: float = PAUSE,
        connect: Callable[[Address, float], Wire] = lambda address, timeout: Wire(address, timeout=timeout),
    ) -> None:
        """`connect` opens a connection with that timeout: over TLS, say."""
        self.address = address
        self._connect = connect
        self.target = target
        self.pause = pause
        self.check = check
        self.timeout = timeout
        self.fields = fields
        self.tally = Tally()
        self._left: float | None = None
        super().__init__(self.tally, [self._client] * clients)

    def answers(self) -> int:
        return self.tally.answered

    def leaving(self) -> None:
        """From now on the server may refuse new connections."""
        self._left = time.monotonic()

    def _client(self) -> None:
        while not self._stop.is_set():
            opened = time.monotonic()
            try:
                wire = self._connect(self.address, self.timeout)
            except OSError as error:
                # Judged by when it was refused: a SYN may leave long after connect() was called, and twice.
                self._refused(time.monotonic(), f"connect: {error!r}")
                return
            with wire:
                if not self._converse(wire, opened):
                    return

    def _converse(self, wire: Wire, opened: float) -> bool:
        """Asks until the connection ends; says whether to open another one."""
        answered = 0
        while not self._stop.is_set():
            try:
                reply = wire.get(self.target, *self.fields)
            except Silent:
                if answered == 0:
                    return not self._refused(opened, "a new connection was closed without an answer")
                with self._lock:
                    self.tally.reconnects += 1
                return True
            except (OSError, AssertionError) as error:
                if answered == 0 and isinstance(error, ConnectionError):
                    return not self._refused(opened, f"new connection: {error!r}")
                self._fail(f"after {answered} answers: {error!r}")
                return True
            answered += 1
            if not self.check(reply):
                self._fail(f"answered {reply.status} {reply.body[:100]!r}")
            else:
                with self._lock:
                    self.tally.answered += 1
            if self.pause:
                self._stop.wait(self.pause)
            if reply.closes:
                return True
        return False

    def _refused(self, opened: float, what: str) -> bool:
        """Whether the server is leaving and this connection came too late to be owed an answer."""
        if self._left is not None and opened > self._left:
            with self._lock:
                self.tally.refused += 1
            return True
        self._fail(what)
        return False

    def _fail(self, what: str) -> None:
        with self._lock:
            self.tally.failures.append(what)
