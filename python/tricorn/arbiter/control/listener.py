"""Accepts clients, reads from them, writes to them, and keeps the limits. Never waits for one.

A client is read only after it has been answered. One that floods the server with requests, or does not read the
answers, slows down only itself.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tricorn.arbiter.control.bound_socket import BoundSocket
from tricorn.arbiter.policy.state import NEVER
from tricorn.record import Record
from tricorn.unpatched import os, select, socket

if TYPE_CHECKING:
    from tricorn.arbiter.control.session import Answered, Broken, Request, Session

MOST_CLIENTS = 8
MOST_OF_OTHERS = 6
"""Clients of users other than root and the server's own, who find the remaining places free."""
MOST_OF_ANOTHER = 2
"""Clients of any one such user."""
MOST_WAITS = 8
"""Pending answers of one client (`reload --wait`); with so many it is not read."""
MOST_UNSENT = 1 << 20
"""Bytes that wait for one client; with more it is dropped."""
SILENCE = 300.0
"""Seconds without a word from a client that is not waiting for one of ours, or without reading what is sent."""
PIECE = 64 << 10
"""Bytes read from a client, or written to it, in one turn of the loop."""


class Peer(Record):
    """The process at the other end (SO_PEERCRED). -1: the system does not tell."""

    uid: int = -1
    pid: int = -1

    @property
    def is_owner(self) -> bool:
        """Root, or the server's own user."""
        return self.uid in (0, os.geteuid())

    def __str__(self) -> str:
        return f"uid {self.uid} (pid {self.pid})"


class Client:
    """State of a connected client. Not a `dataclass`, which would slow down every start by compiling methods."""

    def __init__(self, number: int, sock: socket.socket, peer: Peer, session: Session, now: float) -> None:
        self.number = number
        self.socket = sock
        self.peer = peer
        self.session = session
        self.heard = now
        """The time when it last sent or read something."""
        self.unsent: deque[tuple[memoryview, tuple[int, ...]]] = deque()
        """Bytes to send, with the descriptors that go with the first one."""
        self.bytes_unsent = 0
        self.follows = False
        """Subscribed to events."""
        self.waits = 0
        """Number of answers that come later."""
        self.more = False
        """Bytes that were read may have another request."""
        self.ending = False
        """Closed once everything was sent."""

    @property
    def is_ready(self) -> bool:
        """Whether another request is taken."""
        return not self.unsent and not self.ending and self.waits < MOST_WAITS

    @property
    def interest(self) -> int:
        """Events to poll(2) for. Until the requests that were read are answered, only a hang-up is noticed."""
        if self.unsent or self.ending:
            return select.POLLOUT
        return select.POLLIN if self.is_ready and not self.more else 0

    @property
    def deadline(self) -> float:
        is_idle = not (self.follows or self.waits)
        return self.heard + SILENCE if is_idle or self.unsent else NEVER


class ControlListener:
    def __init__(self, bound: BoundSocket | None) -> None:
        self.bound = bound
        """Absent if the server has no control socket: no client ever comes."""
        self.clients: dict[int, Client] = {}
        self._last = 0
        self._served = 0
        """The client that was served last: the next one is the first of the next turn."""
        self._gone: list[int] = []

    def register(self, poll: select.poll) -> None:
        if self.bound is not None:
            poll.register(self.bound.socket, select.POLLIN)
        for client in self.clients.values():
            poll.register(client.socket, client.interest)

    def due(self, now: float) -> float:
        """Returns when to take a turn though no descriptor is ready."""
        if self.has_more():
            return now
        return min((client.deadline for client in self.clients.values()), default=NEVER)

    def turn(self, ready: Container[int], now: float) -> Iterator[tuple[Client, Request | Answered | Broken]]:
        """Yields the requests of clients, at most one of each.

        Clients behind the last request that was taken are served in the next turn, and first.
        """
        if self.bound is not None and self.bound.socket.fileno() in ready:
            self._accept(self.bound.socket, now)
        clients = list(self.clients.values())
        for client in sorted(clients, key=lambda client: (client.number <= self._served, client.number)):
            self._served = client.number
            if client.socket.fileno() in ready:
                self._read_or_write(client, now)
            elif now >= client.deadline:
                self.drop(client)
            if client.number in self.clients and client.is_ready:
                request = _next_of(client.session)
                client.more = request is not None
                if request is not None:
                    yield client, request

    def has_more(self) -> bool:
        """Something that was read may be a request, and was not looked at in this turn."""
        return any(client.more and client.is_ready for client in self.clients.values())

    def send(self, client: Client, answer: Mapping[str, object], descriptors: Sequence[int] = ()) -> None:
        if client.number not in self.clients:
            return
        data = client.session.encode(answer)
        client.unsent.append((memoryview(data), tuple(descriptors)))
        client.bytes_unsent += len(data)
        if client.bytes_unsent > MOST_UNSENT:
            self.drop(client)
        elif len(client.unsent) == 1:
            self._write(client)

    def end(self, client: Client) -> None:
        """Closes the connection once everything was sent."""
        client.ending = True
        if not client.unsent:
            self.drop(client)

    def drop(self, client: Client) -> None:
        if self.clients.pop(client.number, None) is not None:
            client.socket.close()
            self._gone.append(client.number)

    def take_gone(self) -> list[int]:
        """The clients that have left since the last look."""
        gone, self._gone = self._gone, []
        return gone

    def promote(self) -> None:
        """Takes the name that the predecessor has left."""
        if self.bound is not None:
            self.bound.promote()

    def take_name_back(self) -> None:
        """Takes the name back that a successor had, which is gone."""
        if self.bound is not None:
            self.bound.take_name_back()

    def release(self) -> None:
        """Closes inherited descriptors and keeps the socket file. Called in a worker."""
        if self.bound is not None:
            self.bound.socket.close()
        for client in self.clients.values():
            client.socket.close()

    def close(self) -> None:
        if self.bound is not None:
            self.bound.remove()
        self.release()

    def _accept(self, sock: socket.socket, now: float) -> None:
        """One in a turn: a storm of connections is no reason to stop looking at workers."""
        from tricorn.arbiter.control.session import Session

        try:
            accepted, _ = sock.accept()
        except OSError:
            return
        accepted.setblocking(False)
        peer = _peer(accepted)
        if not self._has_place(peer):
            with accepted, suppress(OSError):
                accepted.send(_FULL)
            return
        self._last += 1
        self.clients[self._last] = Client(self._last, accepted, peer, Session(), now)

    def _has_place(self, peer: Peer) -> bool:
        """A user who may only look does not keep the owner out."""
        if len(self.clients) >= MOST_CLIENTS:
            return False
        others = [client.peer.uid for client in self.clients.values() if not client.peer.is_owner]
        return peer.is_owner or (len(others) < MOST_OF_OTHERS and others.count(peer.uid) < MOST_OF_ANOTHER)

    def _read_or_write(self, client: Client, now: float) -> None:
        try:
            if client.unsent:
                self._write(client)
                client.heard = now
                return
            data = client.socket.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            self.drop(client)
            return
        if not data:
            self.drop(client)
            return
        client.heard = now
        client.session.feed(data)

    def _write(self, client: Client) -> None:
        data, descriptors = client.unsent[0]
        try:
            if descriptors:
                sent = socket.send_fds(client.socket, [data[:PIECE]], descriptors)
            else:
                sent = client.socket.send(data[:PIECE])
        except BlockingIOError:
            return
        except OSError:
            self.drop(client)
            return
        client.bytes_unsent -= sent
        if sent < len(data):
            client.unsent[0] = (data[sent:], ())
            return
        client.unsent.popleft()
        if client.ending and not client.unsent:
            self.drop(client)


def _next_of(session: Session) -> Request | Answered | Broken | None:
    from tricorn.arbiter.control.session import Frame

    request = session.next()
    if not isinstance(request, Frame):
        return request
    from tricorn.arbiter.control import gunicorn  # few clients are gunicornc

    return gunicorn.translate(request)


def _peer(accepted: socket.socket) -> Peer:
    if not hasattr(socket, "SO_PEERCRED"):
        return Peer()
    credentials = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    return Peer(uid, pid)


_FULL = b'{"id":null,"ok":false,"kind":"busy","error":"Too many clients are connected; try again in a moment."}\n'
