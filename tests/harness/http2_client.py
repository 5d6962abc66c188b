"""HTTP/2 for suites that speak of requests and responses: `Http2Client` is used as `Wire` is.

It is given the bytes of HTTP/1.1 requests, and sends the same requests as streams. A test that asks for what HTTP/2
does not have (a reason phrase, framing, a connection that ends with a response) is skipped at that moment.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest

from tests.harness.http2 import Answer, Http2Wire
from tests.harness.tls import shake_hands
from tests.harness.wire import Reply, Short, Silent, Wire

REQUEST_LINE = re.compile(rb"(\S+) (\S+) HTTP/1\.1")
CONNECTION_FIELDS = ("connection", "keep-alive", "host", "transfer-encoding", "proxy-connection", "upgrade")


def has_no_such() -> NoReturn:
    pytest.skip("HTTP/2 has no such thing")


class Http2Reply(Reply):
    """A response without what only HTTP/1 has."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("reason", "framing", "chunks", "closes", "version"):
            has_no_such()
        return super().__getattribute__(name)


@dataclass
class _Upload:
    """The body of the request that is being sent."""

    stream: int
    missing: int


class Http2Client(Wire):
    """A connection that is HTTP/2: by prior knowledge, or as TLS has agreed on it, with a client's `context`.

    Responses are asked for in the order of the requests.
    """

    def __init__(self, address: Any, *, context: ssl.SSLContext | None = None, **options: Any) -> None:
        super().__init__(address, **options)
        if context is not None:
            self.sock = secure = shake_hands(self.sock, context)
            assert secure.selected_alpn_protocol() == "h2"
        self._given = b""
        self._upload: _Upload | None = None
        self._waiting: list[tuple[str, int]] = []
        """Methods and streams of the requests whose responses were not asked for."""
        self.session = Http2Wire(self, scheme="http" if context is None else "https")

    @property
    def is_asking(self) -> bool:
        """Whether there is a request whose response was not asked for."""
        return bool(self._waiting)

    @property
    def unread(self) -> bytes:
        has_no_such()

    @unread.setter
    def unread(self, _: bytes) -> None:
        """Bytes are the session's."""

    def send(self, *parts: bytes) -> Http2Client:
        self._given += b"".join(parts)
        while self._given and (self._send_body() if self._upload else self._send_head()):
            pass
        return self

    def _send_head(self) -> bool:
        """Whether there is a whole one."""
        head, end, rest = self._given.partition(b"\r\n\r\n")
        if not end:
            return False
        first, *lines = head.split(b"\r\n")
        line = REQUEST_LINE.fullmatch(first)
        pairs = [line.decode("latin-1").partition(":") for line in lines]
        fields = [(name.lower(), value.strip(" \t")) for name, _, value in pairs]
        named = dict(fields)
        if line is None or line[2][:1] not in (b"/", b"*") or "transfer-encoding" in named or not named.get("host"):
            has_no_such()
        own = [pair for pair in fields if pair[0] not in CONNECTION_FIELDS]
        length = int(named.get("content-length", "0"))
        method, target = line[1].decode(), line[2].decode("latin-1")
        stream = self.session.begin(method, target, own, authority=named["host"], end=length == 0)
        self._waiting.append((method, stream))
        self._given = rest
        self._upload = _Upload(stream, length) if length else None
        return True

    def _send_body(self) -> bool:
        body = self._upload
        assert body is not None
        piece, self._given = self._given[: body.missing], self._given[body.missing :]
        body.missing -= len(piece)
        self.session.upload(body.stream, piece, end=not body.missing)
        if not body.missing:
            self._upload = None
        return bool(piece)

    def reply(self, method: str = "GET") -> Reply:
        """The response to the first request whose response was not asked for."""
        if not self._waiting:
            has_no_such()
        _, stream = self._waiting.pop(0)
        answer = self.session.answers[stream]
        self.session.read_until(lambda: self._is_settled(answer), f"stream {stream} ends")
        if answer.reset not in (None, 0) or not answer.ended:
            raise (Short if answer.fields else Silent)(f"the stream was reset with {answer.reset}")
        return as_reply(answer)

    def _is_settled(self, answer: Answer) -> bool:
        return answer.ended or answer.reset is not None or self.session.is_over

    def interim(self) -> Reply:
        answer = self.session.answers[self._waiting[0][1]]
        self.session.read_until(lambda: bool(answer.interims), "an interim response comes")
        return interim(answer.interims.pop(0))

    def wait_begun(self) -> None:
        answer = self.session.answers[self._waiting[0][1]]
        self.session.read_until(lambda: bool(answer.pieces), "content comes")

    def closed(self) -> None:
        has_no_such()

    def ended(self) -> bytes:
        has_no_such()

    def still_open(self, timeout: float = 0.05) -> bool:
        has_no_such()

    def finish_sending(self) -> Wire:
        has_no_such()


def as_reply(answer: Answer) -> Reply:
    reply = interim(answer.lines)
    reply.body = answer.body
    reply.interims = [interim(fields) for fields in answer.interims]
    return reply


def interim(fields: list[tuple[str, str]]) -> Reply:
    (_, status), *rest = fields
    return Http2Reply("HTTP/2", int(status), "", rest)
