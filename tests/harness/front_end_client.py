"""uwsgi and FastCGI for suites that speak of requests and responses: `FrontEndClient` is used as `Wire` is.

It is given the bytes of HTTP/1.1 requests, and sends what a front end makes of them: vars, and the content. A test that
asks for what such a request does not have (framing, an interim response, a second request after uwsgi's one) is
skipped at that moment.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from tests.harness import front_ends
from tests.harness.wire import Reply, Short, Silent, Wire

if TYPE_CHECKING:
    from tests.harness.server import Server

REQUEST_LINE = re.compile(rb"([!-~]+) ([!-~]+) HTTP/(1\.[01])")
FIELD = re.compile(rb"([A-Za-z0-9-]+):[ \t]*((?:[\t -\xff]*[!-\xff])?)[ \t]*")
HTTP_ALONE = {"transfer-encoding", "expect", "te", "trailer"}
OWN = ("Content-Type", "Content-Length")


def has_no_such() -> NoReturn:
    pytest.skip("a front end's protocol has no such thing")


def needs_an_end(server: Server) -> None:
    """Skips a test of responses that are cut off: one of uwsgi ends with its connection, in whatever way that ends."""
    if server.wire_options.get("protocol") == "uwsgi":
        has_no_such()


class FrontEndReply(Reply):
    """A response without what only HTTP/1 has."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("framing", "chunks", "closes", "version", "interims"):
            has_no_such()
        return super().__getattribute__(name)


class FrontEndClient(Wire):
    """A front end's connection, with one request after another where the protocol has that."""

    def __init__(self, address: Any, *, protocol: str, **options: Any) -> None:
        super().__init__(address, **options)
        self._protocol = protocol
        self._given = b""
        self._missing: int | None = None
        """Bytes of content of the request that is sent; None: there is none, and a head is next."""
        self._sent: list[int] = []
        """Numbers of the requests whose responses were not asked for."""
        self._count = 0

    def send(self, *parts: bytes) -> FrontEndClient:
        self._given += b"".join(parts)
        out: list[bytes] = []
        while self._given and (self._say_head(out) if self._missing is None else self._say_body(out)):
            pass
        super().send(*out)
        return self

    def _say_head(self, out: list[bytes]) -> bool:
        """Whether there is a whole one."""
        head, end, rest = self._given.partition(b"\r\n\r\n")
        if not end:
            return False
        first, *lines = head.split(b"\r\n")
        line, fields = REQUEST_LINE.fullmatch(first), [FIELD.fullmatch(line) for line in lines]
        if line is None or line[2][:1] != b"/":
            has_no_such()
        pairs = [(each[1].decode(), each[2].decode("latin-1")) for each in fields if each is not None]
        names = {name.lower() for name, _ in pairs}
        if len(pairs) < len(lines) or len(names) < len(pairs) or names & HTTP_ALONE:
            has_no_such()
        # Whether the client speaks HTTP/1.0 has nothing to do with the end of a response of FastCGI.
        if self._count if self._protocol == "uwsgi" else line[3] == b"1.0":
            has_no_such()
        self._count += 1
        self._sent.append(self._count)
        self._given, self._missing = rest, int(dict(pairs).get("Content-Length") or 0)
        keep = dict(pairs).get("Connection") != "close"
        method, target, version = (part.decode("latin-1") for part in line.groups())
        out.append(self._opening(self._vars(method, target, version, pairs), keep))
        return self._say_body(out)

    def _vars(self, method: str, target: str, version: str, pairs: list[tuple[str, str]]) -> dict[str, str]:
        """As nginx says them."""
        found = front_ends.cgi(method, target, SERVER_PROTOCOL=f"HTTP/{version}")
        del found["HTTP_HOST"]
        near, far = self.sock.getsockname(), self.sock.getpeername()
        if isinstance(near, tuple):
            found |= {"REMOTE_ADDR": near[0], "REMOTE_PORT": str(near[1])}
            found |= {"SERVER_NAME": far[0], "SERVER_PORT": str(far[1])}
        for name, value in pairs:
            key = name.upper().replace("-", "_")
            found[key if name in OWN else f"HTTP_{key}"] = value
        found["PATH_INFO"] = front_ends.decoded(target.partition("?")[0])
        return found

    def _opening(self, told: dict[str, str], keep: bool) -> bytes:
        if self._protocol == "uwsgi":
            return front_ends.uwsgi(told)
        params = front_ends.pairs(told)
        parts = [params[at : at + 65528] for at in range(0, len(params), 65528)]
        records = [front_ends.record(front_ends.PARAMS, part, self._count) for part in (*parts, b"")]
        return front_ends.begin(self._count, keep=keep) + b"".join(records)

    def _say_body(self, out: list[bytes]) -> bool:
        """Whether there was something to be sent."""
        assert self._missing is not None
        piece, self._given = self._given[: self._missing], self._given[self._missing :]
        self._missing -= len(piece)
        if self._protocol == "uwsgi":
            out.append(piece)
        else:
            parts = [piece[at : at + 65528] for at in range(0, len(piece), 65528)]
            out += [front_ends.record(front_ends.STDIN, part, self._count) for part in parts]
        if not self._missing:
            self._missing = None
            if self._protocol == "fastcgi":
                out.append(front_ends.record(front_ends.STDIN, b"", self._count))
        return bool(piece) or self._missing is None

    def reply(self, method: str = "GET") -> Reply:
        """The response to the first request whose response was not asked for."""
        if not self._sent:
            has_no_such()
        number = self._sent.pop(0)
        got = super().reply(method) if self._protocol == "uwsgi" else self._of_records(method, number)
        return FrontEndReply("", got.status, got.reason, got.fields, got.body)

    def _of_records(self, method: str, number: int) -> Reply:
        text = b""
        for kind, other, content in front_ends.records(self):
            assert other == number, f"a record of request {other}"
            if kind == front_ends.END:
                return front_ends.parsed(text, method)
            text += content
        raise (Short if text else Silent)("the connection ended before the end of the request")

    def interim(self) -> Reply:
        has_no_such()
