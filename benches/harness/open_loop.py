"""Requests at times fixed beforehand, over persistent connections, whatever the server does meanwhile.

A request counts from the moment it was due, not from the moment a connection was free for it: a server that makes its
clients wait cannot thereby lower the load it is measured under (no coordinated omission). One thread, one epoll; the
last moments before a request is due are spent spinning, and how late requests went out is part of the result.
"""

from __future__ import annotations

import ctypes
import gc
import re
import select
import socket
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

#: Instead of a status: the server closed the connection without an answer; the client's patience was at its end.
CLOSED, GAVE_UP = 0, -1

#: Instead of a number in [0, 1): a client that has no connection yet.
UNOPENED = -1.0

CLOSE_TO_DUE = 150e-6
PR_SET_TIMERSLACK = 29
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
CLOSING = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)


class Planned(NamedTuple):
    """`due` in seconds from the start; `pick` in [0, 1) says which of the free connections it takes."""

    due: float
    path: str
    pick: float


class Outcome(NamedTuple):
    """Seconds from the start of the run. `late` is how long after `due` it was sent although a connection was free."""

    due: float
    sent: float
    done: float
    status: int
    body: bytes
    held_up: bool

    @property
    def latency(self) -> float:
        return self.done - self.due

    @property
    def late(self) -> float:
        return self.sent - self.due


class Answer(NamedTuple):
    status: int
    body: bytes
    keeps: bool


class Client:
    """One of the pool, with its connection while it has one. `request` is the number of the one under way."""

    socket: socket.socket | None = None
    connected = False
    received = b""
    request: int | None = None


class Clients:
    """A pool of clients with a persistent connection each; one that was closed is opened again with the next request.

    `patience`: seconds after which a client gives up, and closes the connection if it had sent its request.
    `fields`: further lines of each request's head, such as b"Connection: close\\r\\n".
    """

    def __init__(self, port: int, count: int, patience: float | None = None, fields: bytes = b"") -> None:
        self.port, self.patience, self.fields = port, patience, fields
        self.epoll = select.epoll()
        self.connected: dict[int, Client] = {}
        self.free = [Client() for _ in range(count)]
        #: Connections ever opened: more than clients if the server closed some.
        self.opened = 0
        # Without this the kernel may wake this thread 50 microseconds late, to save energy.
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)

    def __enter__(self) -> Clients:  # noqa: PYI034 (typing.Self is younger than Python 3.10)
        return self

    def __exit__(self, *_: object) -> None:
        for client in list(self.connected.values()):
            self.disconnect(client)
        self.epoll.close()

    def run(self, plan: Sequence[Planned]) -> list[Outcome]:
        return _Run(self, plan).go()

    def open_all(self, plan: Sequence[Planned]) -> list[Outcome]:
        """A request for each client, that opens its connection."""
        return _Run(self, [planned._replace(pick=UNOPENED) for planned in plan]).go()

    def take(self, pick: float) -> Client:
        place = int(pick * len(self.free))
        if pick == UNOPENED:
            place = next((number for number, client in enumerate(self.free) if client.socket is None), 0)
        self.free[place], self.free[-1] = self.free[-1], self.free[place]
        return self.free.pop()

    def connect(self, client: Client) -> None:
        self.opened += 1
        client.socket = socket.socket()
        client.socket.setblocking(False)
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.connected = client.socket.connect_ex(("127.0.0.1", self.port)) == 0
        self.connected[client.socket.fileno()] = client
        self.epoll.register(client.socket, select.EPOLLIN if client.connected else select.EPOLLIN | select.EPOLLOUT)

    def disconnect(self, client: Client) -> None:
        if client.socket is not None:
            del self.connected[client.socket.fileno()]
            client.socket.close()
        client.socket = None
        client.connected = False


class _Run:
    def __init__(self, clients: Clients, plan: Sequence[Planned]) -> None:
        self.clients, self.plan = clients, plan
        self.requests = [
            b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n" % (planned.path.encode("ascii"), clients.fields)
            for planned in plan
        ]
        self.sent = [0.0] * len(plan)
        self.held_up = [False] * len(plan)
        self.by: list[Client | None] = [None] * len(plan)
        self.outcomes: list[Outcome | None] = [None] * len(plan)
        self.left = len(plan)
        self.next = 0
        self.without_client: deque[int] = deque()
        self.impatient: deque[int] = deque()

    def go(self) -> list[Outcome]:
        gc.collect()
        gc.disable()
        self.start = time.perf_counter()
        try:
            while self.left:
                for number, events in self.clients.epoll.poll(0):
                    if client := self.clients.connected.get(number):
                        self._ready(client, events)
                self._begin_what_is_due()
                self._give_up()
                self._wait()
        finally:
            gc.enable()
        return [outcome for outcome in self.outcomes if outcome is not None]

    def now(self) -> float:
        return time.perf_counter() - self.start

    def _begin_what_is_due(self) -> None:
        while self.next < len(self.plan) and self.plan[self.next].due <= self.now():
            number = self.next
            self.next += 1
            if self.clients.patience is not None:
                self.impatient.append(number)
            if self.clients.free:
                self._begin(self.clients.take(self.plan[number].pick), number)
            else:
                self.held_up[number] = True
                self.without_client.append(number)

    def _begin(self, client: Client, number: int) -> None:
        client.request, client.received = number, b""
        self.by[number] = client
        if client.socket is None:
            self.clients.connect(client)
        if client.connected:
            self._send(client, number)

    def _send(self, client: Client, number: int) -> None:
        assert client.socket is not None
        self.sent[number] = self.now()
        try:
            client.socket.send(self.requests[number])
        except OSError:
            self._lost(client)

    def _ready(self, client: Client, events: int) -> None:
        assert client.socket is not None
        if not client.connected:
            if client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return self._lost(client)
            client.connected = True
            self.clients.epoll.modify(client.socket, select.EPOLLIN)
            if client.request is not None:
                self._send(client, client.request)
        if events & ~select.EPOLLOUT:
            self._read(client)
        return None

    def _read(self, client: Client) -> None:
        assert client.socket is not None
        try:
            piece = client.socket.recv(65536)
        except BlockingIOError:
            return None
        except OSError:
            piece = b""
        if not piece:
            return self._lost(client)
        client.received += piece
        answer = parse(client.received)
        if answer is not None and client.request is not None:
            self._finish(client.request, answer.status, answer.body)
            if not answer.keeps:
                self.clients.disconnect(client)
            self._idle(client)
        return None

    def _lost(self, client: Client) -> None:
        """The server closed the connection: while it idled, or instead of an answer."""
        self.clients.disconnect(client)
        if client.request is not None:
            self._finish(client.request, CLOSED, b"")
            self._idle(client)

    def _idle(self, client: Client) -> None:
        client.request = None
        while self.without_client:
            number = self.without_client.popleft()
            if self.outcomes[number] is None:
                return self._begin(client, number)
        self.clients.free.append(client)
        return None

    def _give_up(self) -> None:
        while self.impatient:
            number = self.impatient[0]
            if self.outcomes[number] is None:
                if self.now() < self._patient_until(number):
                    return
                self._finish(number, GAVE_UP, b"")
                client = self.by[number]
                if client is not None:
                    self.clients.disconnect(client)
                    self._idle(client)
            self.impatient.popleft()

    def _patient_until(self, number: int) -> float:
        return self.plan[number].due + (self.clients.patience or 0.0)

    def _finish(self, number: int, status: int, body: bytes) -> None:
        due = self.plan[number].due
        done = self.now()
        self.outcomes[number] = Outcome(due, self.sent[number] or done, done, status, body, self.held_up[number])
        self.left -= 1

    def _wait(self) -> None:
        if not self.left:
            return
        until = self.plan[self.next].due if self.next < len(self.plan) else float("inf")
        if self.impatient:
            until = min(until, self._patient_until(self.impatient[0]))
        pause = until - self.now() - CLOSE_TO_DUE
        if pause > 0:
            # select() on the epoll: its timeout has microseconds, that of epoll_wait() has milliseconds.
            select.select([self.clients.epoll.fileno()], [], [], min(pause, 10.0))


def parse(received: bytes) -> Answer | None:
    """The answer, None while it is incomplete. Only what has a Content-Length: all servers here send one."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = received[: end + 2]
    length = LENGTH.search(head)
    body = received[end + 4 :]
    if len(body) < (int(length.group(1)) if length else 0):
        return None
    return Answer(int(head[9:12]), body, CLOSING.search(head) is None)
