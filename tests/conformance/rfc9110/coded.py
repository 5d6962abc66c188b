"""A client that decodes a compressed response as it comes, over both versions of HTTP."""

from __future__ import annotations

import json
import zlib
from typing import Any, Protocol
from urllib.parse import quote

from tests.harness import Wire
from tests.harness.http2_client import Http2Client
from tests.harness.wire import Reply, request

CODINGS = ("gzip", "br", "zstd")
HOST = "t"


class Decoder(Protocol):
    def decode(self, data: bytes) -> bytes:
        """Returns what can be read by now."""

    @property
    def is_complete(self) -> bool: ...


class Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)

    def decode(self, data: bytes) -> bytes:
        return self._inner.decompress(data)

    @property
    def is_complete(self) -> bool:
        return self._inner.eof and not self._inner.unused_data


class Brotli:
    def __init__(self) -> None:
        import brotli

        self._inner = brotli.Decompressor()

    def decode(self, data: bytes) -> bytes:
        return bytes(self._inner.process(data))

    @property
    def is_complete(self) -> bool:
        return bool(self._inner.is_finished())


class Zstd:
    def __init__(self) -> None:
        import zstandard

        self._inner = zstandard.ZstdDecompressor().decompressobj()

    def decode(self, data: bytes) -> bytes:
        return self._inner.decompress(data)

    @property
    def is_complete(self) -> bool:
        return self._inner.eof and not self._inner.unused_data


class Plain:
    is_complete = True

    def decode(self, data: bytes) -> bytes:
        return data


DECODERS: dict[str | None, type[Decoder]] = {None: Plain, "gzip": Gzip, "br": Brotli, "zstd": Zstd}


def content(reply: Reply) -> bytes:
    """The whole body of a response, as the application has written it."""
    decoder = DECODERS[reply.get("content-encoding")]()
    body = decoder.decode(reply.body) if reply.body else b""
    assert decoder.is_complete, f"{len(reply.body)} bytes do not end the coding"
    return body


def target(**do: Any) -> str:
    """Asks `tests/apps/compressed.py` for a response."""
    return f"/?do={quote(json.dumps(do))}"


class Coming:
    """A response that is read as it comes."""

    def __init__(self, wire: Wire, path: str, *fields: tuple[str, str], version: str = "1.1") -> None:
        self.wire = wire
        self.content = b""
        self.fields: dict[str, str] = {}
        self.is_over = False
        self._decoder: Decoder | None = None
        self._at = 0
        """How much of the body was decoded."""
        wire.send(request("GET", path, fields, version=version))
        if isinstance(wire, Http2Client):
            self._answer = wire.session.answers[max(wire.session.answers)]

    def read_until(self, text: bytes) -> None:
        """Reads until the application's content ends with this text."""
        while not self.content.endswith(text):
            self._more()

    def read_head(self) -> dict[str, str]:
        while not self.fields:
            self._more()
        return self.fields

    @property
    def is_complete(self) -> bool:
        return self._decoder is not None and self._decoder.is_complete

    def read_to_end(self) -> bytes:
        """Reads to the end of the response, which need not be a proper one."""
        while not self.is_over:
            self._more()
        return self.content

    def _more(self) -> None:
        assert not self.is_over, f"the response is over: {self.fields} {self.content[-100:]!r}"
        body = self._more_http2() if isinstance(self.wire, Http2Client) else self._more_http1()
        if self.fields and self._decoder is None:
            self._decoder = DECODERS[self.fields.get("content-encoding")]()
        if self._decoder is not None and len(body) > self._at:
            self.content += self._decoder.decode(body[self._at :])
            self._at = len(body)

    def _more_http2(self) -> bytes:
        assert isinstance(self.wire, Http2Client)
        answer, session = self._answer, self.wire.session
        before = len(answer.lines), len(answer.body)
        self.wire.session.read_until(
            lambda: (
                (len(answer.lines), len(answer.body)) != before
                or answer.ended
                or answer.reset is not None
                or session.is_over
            ),
            "more of the response comes",
        )
        self.fields = {name: value for name, value in answer.lines if name[0] != ":"}
        self.is_over = answer.ended or answer.reset is not None or session.is_over
        self.ends_properly = answer.ended and not answer.reset
        return answer.body

    def _more_http1(self) -> bytes:
        more = self.wire.sock.recv(65536)
        self.wire.unread += more
        self.is_over = not more
        self.ends_properly = not more
        head, end, rest = self.wire.unread.partition(b"\r\n\r\n")
        if not end:
            return b""
        lines = head.decode("latin-1").split("\r\n")[1:]
        self.fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return self._chunks(rest) if self.fields.get("transfer-encoding") == "chunked" else rest

    def _chunks(self, rest: bytes) -> bytes:
        body = b""
        while True:
            size, end, rest = rest.partition(b"\r\n")
            if not end:
                self.ends_properly = False
                return body
            length = int(size, 16)
            if length == 0:
                self.is_over = self.ends_properly = True
                return body
            body += rest[:length]
            rest = rest[length + 2 :]
