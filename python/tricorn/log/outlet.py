"""A socket to a collector that may be away. No call waits for it: what it does not take is kept for a while, or lost.

    new ── send ──▶ connected ── full ──▶ kept, sent with the next message
                       ▲  │
                       │  └── gone ──▶ opened again, ever less often
                       └──────────────────┘

The same as `crates/tricorn-io/src/collectors` does for requests, for what Python code of the arbiter and the workers
sends. A name is looked up when the log is made, and by the arbiter later (`collector_resolver`). A fork shares a socket
for datagrams, and opens streams anew: where the file says (`told`) in which the arbiter writes what the name means.
"""

from __future__ import annotations

import errno
from collections import deque
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from tricorn.config.collectors import Collector
from tricorn.unpatched import _thread, os, select, socket, time

KEPT = 256 * 1024
"""Bytes of messages that are kept."""
FIRST, LAST = 0.1, 30.0
"""Seconds until a connection is tried again: doubled from the first to the last."""
MOST_TOLD = 64
"""Bytes of an address and a port as text; the core reads as many."""
PATIENCE = 0.5
"""Seconds that the end of a process waits for a collector that is slow, and its beginning for a stream."""


Socket = socket.socket


def _is_address(host: str, family: int) -> bool:
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):
        return False
    return True


class Place(NamedTuple):
    """What a name means."""

    family: int
    host: str
    port: int


def written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _read(text: str) -> Place | None:
    host, _, port = text.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return Place(int(family), host, int(port)) if port.isdigit() and _is_address(host, family) else None


def look_up(collector: Collector, family: int) -> Place:
    """It waits for the system's resolver. Raises OSError."""
    _, host, port = collector
    kind = socket.SOCK_STREAM if collector.transport == "tcp" else socket.SOCK_DGRAM
    found_family, *_, place = socket.getaddrinfo(host, port, family, kind)[0]
    return Place(int(found_family), str(place[0]), int(place[1]))


class Outlet:
    socket: Socket | None = None
    told = -1
    """A file without a name, which all processes have: the address that the name of a stream's collector means."""
    _offset = 0
    """Bytes of the first message that a stream has taken."""

    def __init__(self, collector: Collector, *, keeps: bool, inet4: bool = False) -> None:
        """`keeps`: what the socket does not take is sent later. `inet4`: a name is looked up for IPv4 only."""
        self.collector = collector
        self.address: str | tuple[str, int] | None = None
        """Where it is; None: a name that is not known."""
        self.trouble = ""
        """Why it could not be reached at first."""
        self.lost = 0
        self._keeps = keeps
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._family: int = socket.AF_UNIX
        self.family: int = socket.AF_UNSPEC
        """Of addresses that its name may mean."""
        self._stream = False
        self._delay, self._retry_at = 0.0, 0.0
        self._pid = os.getpid()
        # Reentrant: a signal handler may log while its thread sends.
        self._lock = _thread.RLock()
        if self.has_name and self.collector.transport == "tcp" and hasattr(os, "memfd_create"):
            with suppress(OSError):
                self.told = os.memfd_create("tricorn-collector")
        try:
            self._look_up(inet4)
            self.socket = self._connected()
        except OSError as error:
            self.trouble = error.strerror or str(error)
        if self._stream:
            self._has_room(PATIENCE)

    @property
    def has_name(self) -> bool:
        """Whether its name may come to mean another address."""
        host = self.collector.host
        if self.collector.transport not in ("udp", "tcp") or host == "localhost":
            return False
        return not any(map(partial(_is_address, host), (socket.AF_INET, socket.AF_INET6)))

    @property
    def is_stream(self) -> bool:
        """Whether messages follow one another without borders, as far as that is known."""
        return self._stream or self.collector.transport in ("tcp", "stream")

    def send(self, message: bytes) -> None:
        if self._pid != os.getpid():
            self._was_forked()
        with self._lock:
            self._send(message)

    def _send(self, message: bytes) -> None:
        if self._size + len(message) > KEPT:
            self.lost += 1
            return
        self._kept.append(message)
        self._size += len(message)
        self._send_all()
        if not self._keeps and self._kept:
            self.lost += len(self._kept)
            self._forget()

    def flush(self) -> None:
        """Sends what is kept, as far as the socket takes it."""
        if self._pid == os.getpid():
            with self._lock:
                self._send_all()

    def _send_all(self) -> None:
        while self._kept and self._send_first():
            pass

    def close(self) -> None:
        """The process leaves: the last words wait for a moment."""
        self.flush()
        end = time.monotonic() + PATIENCE
        while self._kept and self._pid == os.getpid() and self._has_room(end - time.monotonic()):
            self.flush()  # as much of it as there is room for
        self.lost += len(self._kept)
        self._forget()
        self._disconnect()

    def __del__(self) -> None:
        """A reload makes another one: nothing is waited for."""
        self._disconnect()
        if self.told >= 0:
            os.close(self.told)
            self.told = -1

    def complaint(self, name: str, setting: str) -> str:
        """What the log should say at first; empty: nothing."""
        if not self.trouble:
            return ""
        what = "A reload looks it up again" if self.address is None else "It is tried again"
        return f"{name} at {self.collector} cannot be reached: {self.trouble} ({setting}). {what}."

    def descriptor(self) -> int:
        """One that a worker's core may use as well; -1: there is none, or the core opens one of its own."""
        return -1 if self.socket is None or self._stream else self.socket.fileno()

    def _send_first(self) -> bool:
        """Sends the first message. Whether all of it was taken, or is lost."""
        while self.socket is not None or self._reconnect():
            message = self._kept[0]
            try:
                self._offset += self._to_socket(message[self._offset :])
            except BlockingIOError:
                if not self._hear():
                    return False
                self._disconnect()
                continue
            except OSError as error:
                if self.collector.transport == "udp" or error.errno == errno.EMSGSIZE:
                    self.lost += 1
                    return self._drop_first()
                self._disconnect()
                continue
            if self._stream and self._offset < len(message):
                return False
            self._delay = 0.0
            return self._drop_first()
        return False

    def _drop_first(self) -> bool:
        self._size -= len(self._kept.popleft())
        self._offset = 0
        return True

    def _to_socket(self, message: bytes) -> int:
        assert self.socket is not None
        flags = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
        try:
            return self.socket.send(message, flags)
        except ConnectionRefusedError:
            if self.collector.transport != "udp":
                raise
            self.lost += 1
            # The datagram before was refused, and this one was not sent: udp(7).
            return self.socket.send(message, flags)

    def _look_up(self, inet4: bool) -> None:
        transport, host, _ = self.collector
        if transport not in ("udp", "tcp"):
            self.address = host
            return
        self.family = socket.AF_INET if inet4 and ":" not in host else socket.AF_UNSPEC
        self._take(look_up(self.collector, self.family))

    def _take(self, place: Place) -> None:
        # From now on of this family: a socket cannot change its own.
        self.family = self._family = place.family
        self.address = (place.host, place.port)
        if self.told >= 0:
            os.pwrite(self.told, f"{written(place.host, place.port)}\n".ljust(MOST_TOLD).encode(), 0)

    def _hear(self) -> bool:
        """Whether the arbiter has learned of another address meanwhile."""
        if self.told < 0:
            return False
        place = _read(os.pread(self.told, MOST_TOLD, 0).decode("ascii", "replace").partition("\n")[0])
        if place is None or self.address == (place.host, place.port):
            return False
        self.family = self._family = place.family
        self.address = (place.host, place.port)
        return True

    def move(self, place: Place) -> bool:
        """Its name means this. Whether that is something else than before."""
        if self.address == (place.host, place.port):
            return False
        with self._lock:
            self._take(place)
            self._delay = self._retry_at = 0.0
            if self._stream:
                self._disconnect()
            elif self.socket is not None:
                with suppress(OSError):  # no way there now: the next lookup may know another
                    self.socket.connect((place.host, place.port))
        return True

    def _connected(self) -> Socket:
        match self.collector.transport:
            case "udp" | "dgram":
                return self._made(socket.SOCK_DGRAM)
            case "tcp" | "stream":
                return self._made(socket.SOCK_STREAM)
        try:
            return self._made(socket.SOCK_DGRAM)
        except OSError:
            return self._made(socket.SOCK_STREAM)

    def _made(self, kind: int) -> Socket:
        made = socket.socket(self._family, kind)
        try:
            made.setblocking(False)
            with suppress(BlockingIOError):  # the handshake goes on; until then the socket is full
                made.connect(self.address or "")
        except OSError:
            made.close()
            raise
        self._stream = kind == socket.SOCK_STREAM
        return made

    def _reconnect(self) -> bool:
        now = time.monotonic()
        if self._hear():
            self._delay = self._retry_at = 0.0
        if self.address is None or now < self._retry_at:
            return False
        self._delay = min(max(self._delay * 2, FIRST), LAST)
        self._retry_at = now + self._delay
        with suppress(OSError):
            self.socket = self._connected()
        return self.socket is not None

    def _disconnect(self) -> None:
        """Another connection gets the message whole."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None
        self._offset = 0

    def _was_forked(self) -> None:
        """What the parent keeps is the parent's, and its place in a stream. A thread of it may have the lock."""
        self._pid = os.getpid()
        self._lock = _thread.RLock()
        self.lost = 0
        self._forget()
        if self._stream and self.socket is not None:
            inherited = self.socket
            try:
                self.socket = self._connected()
            except OSError:  # a user that may not: what was opened before serves still
                self.socket = inherited

    def _has_room(self, within: float) -> bool:
        """Whether the socket takes something within so many seconds; it may also have failed."""
        if self.socket is None or within <= 0:
            return False
        poll = select.poll()
        poll.register(self.socket.fileno(), select.POLLOUT)
        return bool(poll.poll(int(within * 1000)))

    def _forget(self) -> None:
        self._kept.clear()
        self._size = self._offset = 0
