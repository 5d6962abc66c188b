"""Clients on a host, bounded in number and time; each request is accounted for, with what became of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tests.cluster.net import Host
from tests.harness import until
from tests.harness.load import Clients
from tests.harness.wire import Silent, Wire

if TYPE_CHECKING:
    from typing_extensions import Self

BODY = b"x" * 100
MOST_SECONDS = 120
"""After which clients stop by themselves, whatever the test does."""


class Told(NamedTuple):
    """What a client was told, or was not."""

    method: str
    began: float
    """time.monotonic()"""
    seconds: float
    reused: bool
    """The connection had answered before."""
    status: int = 0
    """0: there was no answer."""
    host: str = ""
    """Which of them has answered."""
    error: str = ""

    @property
    def is_lost(self) -> bool:
        return self.status != 200


class Load(Clients[list[Told]]):
    """Each client asks, pauses, and asks again: GET and POST in turns, on one connection or on a new one each time.

    An end before the first byte of an answer to a GET on a used connection is no loss: RFC 9110, 9.2.2, lets each
    client ask again, and this one does. A POST on it is lost.
    """

    def __init__(
        self,
        host: Host,
        address: tuple[str, int],
        *,
        clients: int = 8,
        pause: float = 0.05,
        methods: Sequence[str] = ("GET", "POST"),
        keep: bool = True,
        timeout: float = 10,
        fields: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._host = host
        self._address = address
        self._pause = pause
        self._methods = methods
        self._keep = keep
        self._timeout = timeout
        self._fields = fields
        self._end = time.monotonic() + MOST_SECONDS
        super().__init__([], [self._client] * clients)

    @property
    def told(self) -> list[Told]:
        return self._told

    def answers(self) -> int:
        return len(self._told)

    def next(self, answers: int) -> list[Told]:
        """Those that are asked from now on, `answers` at least."""
        now = time.monotonic()
        until(lambda: len(self.since(now)) >= answers, f"{answers} more are answered")
        return self.since(now)

    def since(self, moment: float) -> list[Told]:
        with self._lock:
            return [each for each in self._told if each.began >= moment]

    def _client(self) -> None:
        with self._host.entered(), Connection(self._address, self._timeout) as connection:
            turn = 0
            while not self._stop.is_set() and time.monotonic() < self._end:
                told = connection.ask(self._methods[turn % len(self._methods)], keep=self._keep, fields=self._fields)
                with self._lock:
                    self._told.append(told)
                turn += 1
                self._stop.wait(self._pause)


class Connection:
    """One at a time, opened when it is needed."""

    def __init__(self, address: tuple[str, int], timeout: float = 10) -> None:
        self._address = address
        self._timeout = timeout
        self._wire: Wire | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def ask(self, method: str, target: str = "/", *, keep: bool = True, fields: Sequence[tuple[str, str]] = ()) -> Told:
        began = time.monotonic()
        reused = self._wire is not None
        told = self._try(method, target, keep, fields, began)
        if told is None:  # the connection was closed while it was idle
            told = self._try(method, target, keep, fields, began)
            reused = False
        if told is None:
            told = Told(method, began, time.monotonic() - began, reused, error="closed without an answer")
        return told._replace(reused=reused)

    def _try(
        self, method: str, target: str, keep: bool, fields: Sequence[tuple[str, str]], began: float
    ) -> Told | None:
        """None: there was no answer, and the request may be repeated."""
        wire, used = self._wire, self._wire is not None
        body = BODY if method == "POST" else None
        more = () if keep else (("Connection", "close"),)
        try:
            if wire is None:
                wire = self._wire = Wire(self._address, timeout=self._timeout)
            reply = wire.ask(method, target, (*fields, *more), body)
        except (OSError, AssertionError, Silent) as error:
            self._close()
            if used and method == "GET" and isinstance(error, Silent | ConnectionError):
                return None
            return Told(method, began, time.monotonic() - began, used, error=repr(error))
        if reply.closes or not keep:
            self._close()
        return Told(method, began, time.monotonic() - began, used, reply.status, reply.body.decode())

    def _close(self) -> None:
        if self._wire is not None:
            with contextlib.suppress(OSError):
                self._wire.close()
        self._wire = None


class Arrival(NamedTuple):
    at: float
    """Seconds after the beginning."""
    work: float
    """Seconds that the application takes for it."""


def arrivals(host: Host, address: tuple[str, int], trace: Iterable[Arrival], clients: int) -> list[float]:
    """How long each request of `trace` waited: until its answer, without the work. Each is sent when it arrives.

    A request that finds all `clients` at work waits for one of them; that counts, since it has arrived.
    """
    waits: list[float] = []
    pending = iter(trace)
    lock = threading.Lock()
    began = time.monotonic() + 0.2

    def client() -> None:
        with host.entered(), Connection(address) as connection:
            while True:
                with lock:
                    arrival = next(pending, None)
                if arrival is None:
                    return
                time.sleep(max(0.0, began + arrival.at - time.monotonic()))
                told = connection.ask("GET", fields=(("X-Work", f"{arrival.work:.6f}"),))
                waited = time.monotonic() - began - arrival.at - arrival.work
                assert not told.is_lost, told
                with lock:
                    waits.append(waited)

    threads = [threading.Thread(target=client, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(MOST_SECONDS)
        assert not thread.is_alive(), "a client hangs"
    return waits


def lost(told: Iterable[Told]) -> list[Told]:
    return [each for each in told if each.is_lost]
