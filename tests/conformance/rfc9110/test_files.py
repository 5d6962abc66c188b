"""RFC 9110, sections 8, 13 and 14, of files that the server sends itself."""

from __future__ import annotations

import email
import gzip
import os
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conformance.conftest import conforming
from tests.conftest import Pool
from tests.harness import REFERENCE, Server, each, with_each
from tests.harness.wire import Reply

pytestmark = pytest.mark.skipif(REFERENCE, reason="of our core")

CONTENT = bytes(range(256)) * 40
TEXT = b"body { color: black }\n" * 100
MODIFIED = 784_111_777
"""Sun, 06 Nov 1994 08:49:37 GMT"""
SAME, BEFORE, AFTER = (formatdate(MODIFIED + more, usegmt=True) for more in (0, -1, 1))
RANGE = ("Range", "bytes=0-1")


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("files")
    (top / "content.bin").write_bytes(CONTENT)
    (top / "empty.txt").touch()
    (top / "style.css").write_bytes(TEXT)
    (top / "style.css.gz").write_bytes(gzip.compress(TEXT))
    (top / "style.css.br").write_bytes(b"not really")
    for path in top.iterdir():
        os.utime(path, (MODIFIED, MODIFIED))
    return top


@pytest.fixture(
    scope="session",
    params=each(
        "sync-tcp",
        "gthread-unix",
        "gevent-tcp",
        "asgi-tcp",
        "tornado-tcp",
        "aiohttp-tcp",
        "sync-h2",
        "gthread-h2tls",
        "asgi-h2",
        "asgi-h2tls",
        "gthread-uwsgi",
        "gthread-fastcgi",
    ),
)
def server(request: pytest.FixtureRequest, pool: Pool, directory: Path) -> Iterator[Server]:
    worker_class, _, transport = request.param.partition("-")
    server = conforming(pool, worker_class, transport, static_map=f"/files={directory},max-age=60,immutable")
    before = server.calls()
    yield server
    assert server.calls() == before, "the application is not called"


def ask(server: Server, path: str, *fields: tuple[str, str], method: str = "GET") -> Reply:
    with server.connect() as wire:
        return wire.ask(method, f"/files/{path}", fields)


class Row(NamedTuple):
    """Fields of a request, and the status of its response."""

    fields: tuple[tuple[str, str], ...]
    status: int


def test_validators_type_and_length(server: Server) -> None:
    reply = ask(server, "content.bin")
    assert (reply.status, reply.body) == (200, CONTENT)
    told = {name: reply.get(name) for name in ("content-type", "content-length", "last-modified", "accept-ranges")}
    assert told == {
        "content-type": "application/octet-stream",
        "content-length": str(len(CONTENT)),
        "last-modified": SAME,
        "accept-ranges": "bytes",
    }
    assert reply.get("cache-control") == "max-age=60, immutable"
    assert (reply.get("etag") or "").startswith('"')
    assert reply.get("content-encoding") is None
    assert ask(server, "style.css").get("content-type") == "text/css; charset=utf-8"


def test_head_has_the_fields_of_get(server: Server) -> None:
    for path in ("content.bin", "style.css", "empty.txt"):
        get, head = ask(server, path), ask(server, path, method="HEAD")
        assert (head.status, head.body) == (200, b"")
        left_out = ("date", "content-length") if path == "empty.txt" else ("date",)
        assert [field for field in head.fields if field[0].lower() not in left_out] == [
            field for field in get.fields if field[0].lower() not in left_out
        ]


def test_an_empty_file(server: Server) -> None:
    reply = ask(server, "empty.txt")
    assert (reply.status, reply.body, reply.get("content-length")) == (200, b"", "0")
    assert ask(server, "empty.txt", ("Range", "bytes=0-")).status == 416
    assert ask(server, "empty.txt", ("Range", "bytes=-1")).status == 200


def test_preconditions_are_evaluated_in_their_order(server: Server) -> None:
    """Each row of section 13.2.2."""
    tag = ask(server, "content.bin").get("etag") or ""
    rows = [
        Row((("If-Match", tag),), 200),
        Row((("If-Match", f'"other", {tag}'),), 200),
        Row((("If-Match", "*"),), 200),
        Row((("If-Match", '"other"'),), 412),
        Row((("If-Match", f"W/{tag}"),), 412),
        Row((("If-Match", tag), ("If-Unmodified-Since", BEFORE)), 200),
        Row((("If-Unmodified-Since", SAME),), 200),
        Row((("If-Unmodified-Since", BEFORE),), 412),
        Row((("If-Unmodified-Since", "yesterday"),), 200),
        Row((("If-None-Match", tag),), 304),
        Row((("If-None-Match", f"W/{tag}"),), 304),
        Row((("If-None-Match", "*"),), 304),
        Row((("If-None-Match", '"other"'),), 200),
        Row((("If-None-Match", '"other"'), ("If-Modified-Since", AFTER)), 200),
        Row((("If-None-Match", tag), ("If-Modified-Since", BEFORE)), 304),
        Row((("If-Modified-Since", SAME),), 304),
        Row((("If-Modified-Since", AFTER),), 304),
        Row((("If-Modified-Since", BEFORE),), 200),
        Row((("If-Modified-Since", "Sunday, 06-Nov-94 08:49:37 GMT"),), 304),
        Row((("If-Modified-Since", "Sun Nov  6 08:49:37 1994"),), 304),
        Row((("If-Match", '"other"'), ("If-None-Match", tag)), 412),
        Row((("If-None-Match", tag), RANGE), 304),
        Row((("If-Match", '"other"'), RANGE), 412),
        Row((RANGE,), 206),
        Row((RANGE, ("If-Range", tag)), 206),
        Row((RANGE, ("If-Range", SAME)), 206),
        Row((RANGE, ("If-Range", f"W/{tag}")), 200),
        Row((RANGE, ("If-Range", '"other"')), 200),
        Row((RANGE, ("If-Range", BEFORE)), 200),
        Row((RANGE, ("If-Range", "yesterday")), 200),
    ]
    got = [Row(row.fields, ask(server, "content.bin", *row.fields).status) for row in rows]
    assert got == rows
    heads = [Row(row.fields, ask(server, "content.bin", *row.fields, method="HEAD").status) for row in rows]
    assert heads == [Row(fields, 200 if status == 206 else status) for fields, status in rows]


def test_not_modified_tells_how_long_it_may_be_kept_and_nothing_of_content(server: Server) -> None:
    whole = ask(server, "content.bin")
    reply = ask(server, "content.bin", ("If-None-Match", whole.get("etag") or ""))
    assert (reply.status, reply.body) == (304, b"")
    for name in ("etag", "last-modified", "cache-control", "date"):
        assert reply.get(name) == whole.get(name) or name == "date"
    for name in ("content-type", "content-length", "content-range", "transfer-encoding"):
        assert reply.get(name) is None


def test_an_error_is_not_kept_as_long_as_its_file(server: Server) -> None:
    for fields in ((("Range", "bytes=99999-"),), (("If-Match", '"other"'),)):
        reply = ask(server, "content.bin", *fields)
        assert reply.status in (412, 416)
        assert [reply.get(name) for name in ("cache-control", "etag", "last-modified")] == [None] * 3


@with_each(
    ("value", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-", 5, len(CONTENT)),
        ("bytes=-5", len(CONTENT) - 5, len(CONTENT)),
        ("bytes=100-199", 100, 200),
        ("bytes=0-", 0, len(CONTENT)),
        ("bytes=0-99999999999999999999999", 0, len(CONTENT)),
        ("bytes=-99999999999999999999999", 0, len(CONTENT)),
        ("bytes=99999-, 7-8", 7, 9),
        ("BYTES=7-8", 7, 9),
    ],
)
def test_one_range(server: Server, value: str, start: int, end: int) -> None:
    reply = ask(server, "content.bin", ("Range", value))
    assert (reply.status, reply.body) == (206, CONTENT[start:end])
    assert reply.get("content-range") == f"bytes {start}-{end - 1}/{len(CONTENT)}"
    assert reply.get("content-type") == "application/octet-stream"


@with_each("value", ["bytes=0-1,100-199", "bytes=-3,0-0", "bytes=0-1, 99999-, 3-4"])
def test_several_ranges(server: Server, value: str) -> None:
    reply = ask(server, "content.bin", ("Range", value))
    assert reply.status == 206
    assert reply.get("content-range") is None
    kind = reply.get("content-type") or ""
    assert kind.startswith("multipart/byteranges; boundary=")
    assert reply.get("content-length") == str(len(reply.body))
    parsed = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + reply.body)
    parts = parsed.get_payload()
    assert isinstance(parts, list)
    assert len(parts) == 2
    for part in parts:
        assert isinstance(part, email.message.Message)
        assert part["content-type"] == "application/octet-stream"
        first, _, last = part["content-range"].removeprefix("bytes ").partition("/")[0].partition("-")
        # The parser takes them for text, and lines by their ends.
        assert CONTENT[int(first) : int(last) + 1] in reply.body


@with_each(
    "value",
    ["bytes=99999-", "bytes=10240-10241", "bytes=-0", "bytes=99999-,88888-"],
)
def test_a_range_behind_the_end(server: Server, value: str) -> None:
    reply = ask(server, "content.bin", ("Range", value))
    assert (reply.status, reply.get("content-range")) == (416, f"bytes */{len(CONTENT)}")


@with_each(
    "value",
    [
        "bytes",
        "bytes=",
        "bytes=a-b",
        "bytes=5-4",
        "lines=0-1",
        "bytes=0-5,3-9",
        "bytes=" + ",".join(f"{at}-{at}" for at in range(0, 34, 2)),
        "bytes=0-1;3-4",
    ],
)
def test_what_is_ignored_of_ranges(server: Server, value: str) -> None:
    reply = ask(server, "content.bin", ("Range", value))
    assert (reply.status, reply.body) == (200, CONTENT)


def test_a_precompressed_form_is_a_representation_of_its_own(server: Server) -> None:
    plain, coded = ask(server, "style.css"), ask(server, "style.css", ("Accept-Encoding", "gzip"))
    assert (plain.body, gzip.decompress(coded.body)) == (TEXT, TEXT)
    assert (plain.get("content-encoding"), coded.get("content-encoding")) == (None, "gzip")
    assert plain.get("vary") == coded.get("vary") == "Accept-Encoding"
    assert coded.get("content-type") == "text/css; charset=utf-8"
    tags = {reply.get("etag") for reply in (plain, coded)}
    assert len(tags) == 2
    both = ("Accept-Encoding", "gzip, br")
    assert ask(server, "style.css", both).get("content-encoding") == "br"
    assert ask(server, "style.css", ("Accept-Encoding", "gzip, br;q=0.5")).get("content-encoding") == "gzip"
    assert ask(server, "style.css", ("Accept-Encoding", "gzip;q=0")).body == TEXT
    # Validators and ranges are those of the form.
    assert ask(server, "style.css", both, ("If-None-Match", coded.get("etag") or "")).status == 200
    part = ask(server, "style.css", ("Accept-Encoding", "gzip"), ("Range", "bytes=0-1"))
    assert (part.status, part.body, part.get("content-encoding")) == (206, b"\x1f\x8b", "gzip")
    assert ask(server, "content.bin").get("vary") is None
