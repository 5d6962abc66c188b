"""A `Call` without a network: what arrives is said by the test, what is sent is kept for it."""

from __future__ import annotations

import os
import socket
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from tricorn.gateway.call import ACCEPTED, BEHIND, EXCESS, GONE, Fields, Listener


@dataclass
class FakeCall:
    """Keeps to `tricorn.gateway.call.Call`."""

    method: str = "GET"
    target: str = "/"
    version: str = "HTTP/1.1"
    named: list[tuple[str, str]] = field(default_factory=lambda: [("Host", "example.com")])
    body: deque[bytes] = field(default_factory=deque)
    """What `read` gives, one after another; b"" ends it, and where it is empty nothing has come yet."""
    has_body: bool = False
    length: int | None = None
    scheme: str = "http"
    tls: dict[str, Any] | None = None
    peer: tuple[str, int] | None = ("192.0.2.7", 4321)
    is_trusted: bool = False
    forwarded: str | None = None

    listener: Listener | None = None
    is_behind: bool = False
    is_gone: bool = False
    status: int = 0
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    sent: list[bytes] = field(default_factory=list)
    ended: str = ""
    """How: `end`, `abort`, `refuse 400 …`, `fail …`."""
    unread: bytes = b""
    other_end: socket.socket | None = None
    """The client's end, once the socket was taken."""
    _promised: int | None = None

    @property
    def head(self) -> tuple[str, str, str]:
        return self.method, self.target, self.version

    @property
    def fields(self) -> dict[str, list[str]]:
        fields: dict[str, list[str]] = {}
        for name, value in self.named:
            fields.setdefault(name, []).append(value)
        return fields

    def read(self) -> bytes | None:
        if self.is_gone:
            raise ConnectionResetError("gone")
        return self.body.popleft() if self.body else None

    def start(self, status: int, reason: str, fields: Fields, chunk: bytes) -> int:
        self.status, self.reason = status, reason
        pairs = [(n, v) for n, vs in fields.items() for v in vs] if isinstance(fields, dict) else fields
        self.headers = {name.lower(): value for name, value in pairs}
        if self.method != "HEAD" and status not in (204, 304):
            self._promised = int(self.headers["content-length"]) if "content-length" in self.headers else None
        return self.write(chunk)

    def write(self, chunk: bytes) -> int:
        if self.is_gone or self.ended:
            return GONE
        if self._promised is not None and len(chunk) > self._promised:
            return EXCESS
        if self._promised is not None:
            self._promised -= len(chunk)
        self.sent.append(chunk)
        return BEHIND if self.is_behind else ACCEPTED

    def end(self) -> int:
        self._over("end")
        return self._promised or 0

    def abort(self) -> None:
        self._over("abort")

    def refuse(self, status: int, message: str) -> None:
        self._over(f"refuse {status} {message}")

    def fail(self, error: BaseException) -> None:
        self._over(f"fail {error!r}")

    def _over(self, how: str) -> None:
        self.ended = self.ended or how
        self.listener = None

    def take_socket(self) -> tuple[int, bytes, dict[str, Any] | None]:
        ours, self.other_end = socket.socketpair()
        fd = os.dup(ours.fileno())
        ours.close()
        os.set_blocking(fd, False)
        return fd, self.unread, None

    def leave(self) -> None:
        """The client goes away."""
        self.is_gone = True
        listener = self.listener
        self._over("gone")
        if listener is not None:
            listener.on_gone()

    @property
    def text(self) -> bytes:
        return b"".join(self.sent)


def begin(server: Any, call: FakeCall) -> Any:
    """As the core does for the first request of a connection."""
    listener = server.begin(call, server.connect(call))
    if not call.ended:
        call.listener = listener
    return listener
