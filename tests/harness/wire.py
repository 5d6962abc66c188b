"""An HTTP/1 client that sends what it is told and believes nothing it reads."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.harness import sock_diag
from tests.harness.deadline import PATIENCE

if TYPE_CHECKING:
    from typing_extensions import Self

STATUS_LINE = re.compile(rb"(HTTP/1\.[01]) (\d{3}) ([\t \x21-\x7e\x80-\xff]*)")
FIELD_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t \x21-\x7e\x80-\xff]*?)[ \t]*")
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})")
HEAD_LIMIT = 1 << 20

Address = tuple[str, int] | str
Fields = Sequence[tuple[str, str]]


class Malformed(AssertionError):
    """The server sent something that is not one well-formed response."""


class Short(Malformed):
    """The connection ended inside a response."""


class Silent(Short):
    """The connection ended cleanly before the first byte of a response."""


@dataclass
class Reply:
    """One response, its framing already checked."""

    version: str
    status: int
    reason: str
    fields: list[tuple[str, str]]
    body: bytes = b""
    framing: str = "none"
    interims: list[Reply] = field(default_factory=list)
    chunks: list[bytes] = field(default_factory=list)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name: str) -> str | None:
        values = self.all(name)
        return values[0] if values else None

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode("latin-1")

    @property
    def closes(self) -> bool:
        """Whether the server announced that it will close."""
        tokens = [token.strip().lower() for value in self.all("connection") for token in value.split(",")]
        return "close" in tokens or (self.version == "HTTP/1.0" and "keep-alive" not in tokens)


def request(
    method: str,
    target: str,
    fields: Fields = (),
    body: bytes | None = None,
    *,
    version: str = "1.1",
    host: str = "t",
) -> bytes:
    """A well-formed request; a body gets its Content-Length unless `fields` says how it is framed."""
    names = {name.lower() for name, _ in fields}
    lines = [f"{method} {target} HTTP/{version}"]
    if "host" not in names:
        lines.append(f"Host: {host}")
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in fields]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def drain(sock: socket.socket) -> tuple[bytes, bool]:
    """What a socket that does not block has to be read, and whether its connection is over."""
    read = b""
    try:
        while piece := sock.recv(65536):
            read += piece
    except BlockingIOError:
        return read, False
    except OSError:
        pass
    return read, True


def chunked(pieces: Iterable[bytes], trailers: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n" + trailers + b"\r\n"


def connect(address: Address, timeout: float, receive_buffer: int | None = None) -> socket.socket:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(timeout)
    try:
        sock.connect(address)
        if family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        sock.close()
        raise
    return sock


class Wire:
    """One connection. Every wait has a timeout; closing is the caller's context manager."""

    def __init__(self, address: Address, *, timeout: float = PATIENCE, receive_buffer: int | None = None) -> None:
        self.sock = connect(address, timeout, receive_buffer)
        self.unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.sock.close()

    def is_let_go(self) -> bool:
        """Whether the server has closed its end of this TCP connection, seen without touching it."""
        far = self._far_end()
        return far is None or far.is_closed

    def backlog(self) -> int:
        """Bytes of the server's that this end has not acknowledged; 0 if the connection is over."""
        far = self._far_end()
        return far.unacknowledged if far else 0

    def is_all_read(self) -> bool:
        """Whether the server has read all that was sent to it."""
        near = sock_diag.find(self.sock.getsockname(), self.sock.getpeername())
        far = self._far_end()
        return near is not None and far is not None and near.unacknowledged == 0 and far.unread == 0

    def _far_end(self) -> sock_diag.Socket | None:
        """The server's socket."""
        try:
            far, near = self.sock.getpeername(), self.sock.getsockname()
        except OSError:
            return None  # it was reset
        return sock_diag.find(far, near)

    def reset(self) -> None:
        """Closes as a crashing client does: with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    def abandon(self) -> None:
        """Ends both directions at once; wakes a thread that is sending."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def send(self, *parts: bytes) -> Wire:
        self.sock.sendall(b"".join(parts))
        return self

    def finish_sending(self) -> Wire:
        self.sock.shutdown(socket.SHUT_WR)
        return self

    def ask(self, method: str, target: str, fields: Fields = (), body: bytes | None = None, **more: str) -> Reply:
        """Sends one request and reads its one response."""
        self.send(request(method, target, fields, body, **more))
        return self.reply(method)

    def get(self, target: str, *fields: tuple[str, str], version: str = "1.1") -> Reply:
        return self.ask("GET", target, fields, version=version)

    def reply(self, method: str = "GET") -> Reply:
        """Reads exactly one final response to `method`, and the interim ones before it."""
        interims: list[Reply] = []
        while True:
            reply = self._head(bool(interims))
            if reply.status >= 200 or reply.status == 101:
                break
            interims.append(reply)
        reply.interims = interims
        self._body(reply, method)
        return reply

    def interim(self) -> Reply:
        reply = self._head(False)
        if reply.status >= 200:
            raise Malformed(f"an interim response was due, {reply.status} came")
        return reply

    def closed(self) -> None:
        """The server must end the connection here: cleanly, and without another byte."""
        rest = self.unread or self._receive()
        if rest:
            raise Malformed(f"the connection should have ended, but {rest[:200]!r} came")

    def ended(self) -> bytes:
        """Reads to the end of the connection, clean or reset, and gives what came."""
        parts = [self.unread]
        self.unread = b""
        try:
            while piece := self._receive():
                parts.append(piece)
        except ConnectionError:
            pass
        return b"".join(parts)

    def still_open(self, timeout: float = 0.05) -> bool:
        """Whether nothing came and the connection lives, as far as one can tell now."""
        if self.unread:
            return True
        before = self.sock.gettimeout()
        self.sock.settimeout(timeout)
        try:
            self.unread = self.sock.recv(65536)
        except TimeoutError:
            return True
        except ConnectionError:
            return False
        finally:
            self.sock.settimeout(before)
        return bool(self.unread)

    def wait_begun(self) -> None:
        """Waits for the first bytes of a response."""
        if not self.unread:
            self._more("the head")

    def _receive(self) -> bytes:
        return self.sock.recv(65536)

    def _more(self, what: str) -> None:
        piece = self._receive()
        if not piece:
            raise Short(f"the connection ended within {what}, after {self.unread[-200:]!r}")
        self.unread += piece

    def _line(self, what: str) -> bytes:
        while b"\r\n" not in self.unread:
            if len(self.unread) > HEAD_LIMIT:
                raise Malformed(f"{what} has no end")
            self._more(what)
        line, _, self.unread = self.unread.partition(b"\r\n")
        return line

    def _exactly(self, count: int, what: str) -> bytes:
        parts = [self.unread[:count]]
        self.unread = self.unread[count:]
        missing = count - len(parts[0])
        while missing:
            piece = self.sock.recv(min(missing, 1 << 20))
            if not piece:
                raise Short(f"the connection ended within {what}: {missing} of {count} bytes are missing")
            parts.append(piece)
            missing -= len(piece)
        return b"".join(parts)

    def _head(self, in_reply: bool) -> Reply:
        if not self.unread and not in_reply:
            self.unread = self._receive()
            if not self.unread:
                raise Silent("the connection ended before a response")
        line = self._line("the status line")
        match = STATUS_LINE.fullmatch(line)
        if not match:
            raise Malformed(f"not a status line: {line[:200]!r}")
        reply = Reply(match[1].decode(), int(match[2]), match[3].decode("latin-1"), [])
        while line := self._line("the head"):
            match = FIELD_LINE.fullmatch(line)
            if not match:
                raise Malformed(f"not a field line: {line[:200]!r}")
            reply.fields.append((match[1].decode(), match[2].decode("latin-1")))
        return reply

    def _body(self, reply: Reply, method: str) -> None:
        lengths, codings = reply.all("content-length"), reply.all("transfer-encoding")
        if len(lengths) > 1 or (lengths and codings):
            raise Malformed(f"framed twice: {reply.fields}")
        if lengths and not re.fullmatch(r"[0-9]+", lengths[0]):
            raise Malformed(f"not a length: {lengths[0]!r}")
        if codings and (codings != ["chunked"] or reply.version == "HTTP/1.0"):
            raise Malformed(f"a coding the client cannot read: {reply.version} {codings}")
        if method == "HEAD" or reply.status in (204, 304):
            if reply.status == 204 and (lengths or codings):
                raise Malformed(f"a 204 announces a body: {reply.fields}")
            return
        if codings:
            reply.framing = "chunked"
            self._chunks(reply)
        elif lengths:
            reply.framing = "length"
            reply.body = self._exactly(int(lengths[0]), "a body of known length")
        else:
            reply.framing = "close"
            if not reply.closes:
                raise Malformed(f"a body without an end on a connection that stays open: {reply.fields}")
            parts = [self.unread]
            self.unread = b""
            while piece := self._receive():
                parts.append(piece)
            reply.body = b"".join(parts)

    def _chunks(self, reply: Reply) -> None:
        while True:
            line = self._line("a chunk size")
            if not CHUNK_LINE.fullmatch(line):
                raise Malformed(f"not a chunk size: {line[:100]!r}")
            size = int(line, 16)
            if size == 0:
                break
            reply.chunks.append(self._exactly(size, "a chunk"))
            if self._exactly(2, "the end of a chunk") != b"\r\n":
                raise Malformed("a chunk is longer than its size says")
        if line := self._line("the end of a chunked body"):
            raise Malformed(f"an unexpected trailer: {line!r}")
        reply.body = b"".join(reply.chunks)
