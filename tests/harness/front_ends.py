"""A front end's side of uwsgi, SCGI and FastCGI: requests as vars, and responses."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from urllib.parse import unquote_to_bytes

from tests.harness.wire import Reply, Wire

PROTOCOLS = ("uwsgi", "scgi", "fastcgi")
BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, GET_VALUES, VALUES, UNKNOWN_TYPE = 1, 2, 3, 4, 5, 6, 9, 10, 11
COMPLETE, CANNOT_MULTIPLEX, UNKNOWN_ROLE = 0, 1, 3


def cgi(method: str = "GET", target: str = "/", body: bytes = b"", /, **more: str) -> dict[str, str]:
    """The vars that nginx' own files have, and more."""
    path, _, query = target.partition("?")
    return {
        "QUERY_STRING": query,
        "REQUEST_METHOD": method,
        "CONTENT_TYPE": "",
        "CONTENT_LENGTH": str(len(body)) if body else "",
        "REQUEST_URI": target,
        "PATH_INFO": path,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REQUEST_SCHEME": "http",
        "REMOTE_ADDR": "203.0.113.9",
        "REMOTE_PORT": "4711",
        "SERVER_NAME": "shop.example",
        "SERVER_PORT": "8080",
        "HTTP_HOST": "shop.example:8080",
        **more,
    }


def decoded(path: str) -> str:
    """A path as PATH_INFO has it, a character for each byte."""
    return unquote_to_bytes(path.encode("latin-1")).decode("latin-1")


def uwsgi(told: Mapping[str, str], *, modifier: int = 0) -> bytes:
    texts = [text.encode("latin-1") for pair in told.items() for text in pair]
    block = b"".join(struct.pack("<H", len(text)) + text for text in texts)
    return struct.pack("<BHB", modifier, len(block), 0) + block


def scgi(told: Mapping[str, str]) -> bytes:
    first = {"CONTENT_LENGTH": told.get("CONTENT_LENGTH") or "0", "SCGI": "1"}
    block = "".join(f"{key}\0{value}\0" for key, value in {**first, **told, **first}.items()).encode("latin-1")
    return b"%d:%b," % (len(block), block)


def record(kind: int, content: bytes = b"", number: int = 1, padding: int = 0) -> bytes:
    return struct.pack(">BBHHBx", 1, kind, number, len(content), padding) + content + bytes(padding)


def begin(number: int = 1, *, keep: bool = False, role: int = 1) -> bytes:
    return record(BEGIN, struct.pack(">HB5x", role, keep), number)


def pairs(told: Mapping[str, str]) -> bytes:
    out = b""
    for key, value in told.items():
        texts = key.encode("latin-1"), value.encode("latin-1")
        lengths = [bytes([len(text)]) if len(text) < 128 else struct.pack(">I", len(text) | 1 << 31) for text in texts]
        out += b"".join((*lengths, *texts))
    return out


def stdin(body: bytes, number: int = 1, *, size: int = 32768) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(record(STDIN, part, number, -len(part) % 8) for part in parts) + record(STDIN, b"", number)


def fastcgi(told: Mapping[str, str], body: bytes = b"", number: int = 1, *, keep: bool = False) -> bytes:
    params = pairs(told)
    parts = [params[at : at + 65528] for at in range(0, len(params), 65528)]
    opening = begin(number, keep=keep) + b"".join(record(PARAMS, part, number) for part in parts)
    return opening + record(PARAMS, b"", number) + stdin(body, number)


def packet(protocol: str, told: Mapping[str, str], body: bytes = b"") -> bytes:
    """A request in the protocol's form, after which the connection ends."""
    if protocol == "fastcgi":
        return fastcgi(told, body)
    return (uwsgi(told) if protocol == "uwsgi" else scgi(told)) + body


def records(wire: Wire) -> Iterator[tuple[int, int, bytes]]:
    """Kind, number and content of each record until the connection ends."""
    while True:
        while len(wire.unread) < 8:
            if not (piece := wire.sock.recv(65536)):
                assert not wire.unread, f"the connection ended within a record: {wire.unread!r}"
                return
            wire.unread += piece
        version, kind, number, length, padding = struct.unpack(">BBHHBx", wire.unread[:8])
        assert version == 1
        whole = 8 + length + padding
        while len(wire.unread) < whole:
            piece = wire.sock.recv(65536)
            assert piece, f"the connection ended within a record, {whole - len(wire.unread)} bytes are missing"
            wire.unread += piece
        content, wire.unread = wire.unread[8 : 8 + length], wire.unread[whole:]
        yield kind, number, content


def stdout(wire: Wire, number: int = 1) -> bytes:
    """What the response to a request has in its records; they end with the one that says so."""
    out, has_ended = b"", False
    for kind, other, content in records(wire):
        assert other == number, f"a record of request {other}"
        if kind == END:
            assert has_ended, "no empty STDOUT"
            assert content == struct.pack(">IB3x", 0, COMPLETE)
            return out
        assert (kind, has_ended) == (STDOUT, False)
        assert len(content) <= 65528
        has_ended = not content
        out += content
    raise AssertionError(f"the connection ended before END_REQUEST, after {out[-200:]!r}")


def parsed(text: bytes, method: str = "GET") -> Reply:
    """A response whose head is CGI's."""
    head, blank, body = text.partition(b"\r\n\r\n")
    assert blank, f"no head: {text[:200]!r}"
    status, *lines = head.decode("latin-1").split("\r\n")
    name, _, said = status.partition(": ")
    assert name == "Status", f"no status: {status!r}"
    fields = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    reply = Reply("CGI", int(said[:3]), said[4:], fields, body)
    assert not reply.all("connection")
    assert not reply.all("transfer-encoding")
    lengths = reply.all("content-length")
    assert len(lengths) < 2
    has_none = method == "HEAD" or reply.status == 304
    assert lengths in ([], [str(len(body))]) or (has_none and not body), f"{lengths}, but {len(body)} bytes came"
    return reply


def reply(protocol: str, wire: Wire, method: str = "GET") -> Reply:
    """The response to the one request of a connection, which ends with it."""
    if protocol == "uwsgi":
        got = wire.reply(method)
        assert got.version == "HTTP/1.1"
        assert got.closes
        assert got.framing != "chunked"
        wire.closed()
        return got
    if protocol == "fastcgi":
        got = parsed(stdout(wire), method)
        wire.closed()
        return got
    return parsed(wire.ended(), method)
