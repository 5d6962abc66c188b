"""RFC 9110 sections 8.4 and 12.5.3: responses that the server compresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import over_http2
from tests.conformance.rfc9110.coded import CODINGS, Coming, content, target
from tests.conftest import Pool
from tests.harness import Server, each, with_each
from tests.harness.http2_client import Http2Client
from tests.harness.wire import Reply, Short

pytestmark = pytest.mark.beyond_reference("gunicorn compresses nothing")

CLASSES = ("sync", "gthread", "gevent", "asgi", "tornado", "aiohttp")
HTML = ("Content-Type", "text/html; charset=utf-8")
EVENTS = ("Content-Type", "text/event-stream")
GZIP = ("Accept-Encoding", "gzip")
LINE = "a line of some text\n"
LONG = len(LINE) * 400


@pytest.fixture(
    scope="session",
    params=each(*(f"{name}-tcp" for name in CLASSES), *(f"{name}-h2" for name in CLASSES)),
)
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    worker_class, _, transport = request.param.partition("-")

    def serving(**more: Any) -> Server:
        return pool.get("compressed:application", worker_class=worker_class, threads=4, compress="on", **more)

    return over_http2(pool, "h2", serving) if transport == "h2" else serving()


def ask(server: Server, *fields: tuple[str, str], method: str = "GET", version: str = "1.1", **do: Any) -> Reply:
    with server.connect() as wire:
        return wire.ask(method, target(**do), fields, version=version)


def whole(server: Server, *asked: tuple[str, str], fields: Any = (HTML,), method: str = "GET", **do: Any) -> Reply:
    """The response to a request for 8,000 bytes, given at once."""
    return ask(server, *asked, method=method, fields=fields, pieces=[(LINE, 400)], whole=True, **do)


def vary(reply: Reply) -> list[str]:
    return [name.strip().lower() for value in reply.all("vary") for name in value.split(",")]


def is_alone(reply: Reply) -> bool:
    """Whether the response is as it would be without compression."""
    return reply.get("content-encoding") is None and "accept-encoding" not in vary(reply)


def is_plain(reply: Reply) -> bool:
    """Whether it would be compressed for another client, or another request."""
    return reply.get("content-encoding") is None and "accept-encoding" in vary(reply)


@with_each("coding", CODINGS)
def test_a_whole_body(server: Server, coding: str, version: str) -> None:
    reply = ask(
        server,
        ("Accept-Encoding", coding),
        version=version,
        fields=[HTML, ("ETag", '"v1"'), ("Accept-Ranges", "bytes"), ("Vary", "Cookie")],
        pieces=[(LINE, 400)],
        whole=True,
    )
    assert reply.get("content-encoding") == coding
    assert reply.all("content-length") == [str(len(reply.body))]
    assert len(reply.body) < LONG / 10
    assert content(reply) == LINE.encode() * 400
    assert (vary(reply), reply.get("etag")) == (["cookie", "accept-encoding"], 'W/"v1"')
    assert reply.get("accept-ranges") is None


@with_each("coding", CODINGS)
def test_a_body_in_pieces(server: Server, coding: str, version: str) -> None:
    pieces = [(LINE, 3), ("x", 1), ("y", 100_000), ("", 1), (LINE, 400)]
    expected = b"".join((text * count).encode() for text, count in pieces)
    for length in ({}, {"length": len(expected)}):
        reply = ask(server, ("Accept-Encoding", coding), version=version, fields=[HTML], pieces=pieces, **length)
        assert reply.get("content-encoding") == coding
        assert reply.get("content-length") is None
        assert "accept-encoding" in vary(reply)
        assert content(reply) == expected


@with_each("coding", CODINGS)
def test_each_event_is_there_before_the_next_is_sent(server: Server, coding: str, version: str, tmp_path: Path) -> None:
    """As Server-Sent Events need it: the application goes on when the client has decoded the last one."""
    gate = tmp_path / coding
    events = [(f"data: {number}\n\n", 1 + 500 * number) for number in range(4)]
    with server.connect() as wire:
        path = target(fields=[EVENTS], pieces=events, gate=str(gate))
        coming = Coming(wire, path, ("Accept-Encoding", coding), version=version)
        for number, (text, count) in enumerate(events):
            coming.read_until(text.encode())
            assert coming.content.count(text.encode()) == count
            assert not coming.is_complete
            gate.with_name(f"{coding}{number}").touch()
        assert coming.read_to_end() == b"".join((text * count).encode() for text, count in events)
    assert coming.fields["content-encoding"] == coding
    assert (coming.is_complete, coming.ends_properly) == (True, True)


@with_each("coding", CODINGS)
def test_an_application_that_fails_ends_no_body(server: Server, coding: str) -> None:
    """A client must be able to tell it from a body that is whole."""
    is_tornado = any("tornado" in word for word in server.argv)
    # tornado ends a body of unknown length itself when its handler has failed.
    for length in ({"length": 10_000}, *([] if is_tornado else [{}])):
        with server.connect() as wire:
            path = target(fields=[HTML], pieces=[(LINE, 5)], fails=True, **length)
            coming = Coming(wire, path, ("Accept-Encoding", coding))
            assert coming.read_to_end() == LINE.encode() * 5
            assert coming.fields["content-encoding"] == coding
            assert not coming.is_complete
            assert isinstance(wire, Http2Client) or not wire.unread.endswith(b"0\r\n\r\n")


def test_a_body_that_is_shorter_than_it_says_ends_no_body(server: Server) -> None:
    with server.connect() as wire, pytest.raises(Short):
        wire.ask("GET", target(fields=[HTML], pieces=[(LINE, 5)], length=10_000), [GZIP])


def test_the_client_chooses(server: Server) -> None:
    for accepted, coding in (
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip;q=1, br;q=0.5, zstd;q=0", "gzip"),
        ("GZIP;q=0.5, BR;q=0.7", "br"),
        ("*", "zstd"),
        ("identity;q=0, br", "br"),
        ("x-gzip", "gzip"),
    ):
        reply = whole(server, ("Accept-Encoding", accepted))
        assert (reply.get("content-encoding"), accepted) == (coding, accepted)
        assert content(reply) == LINE.encode() * 400
    for accepted in ("", "identity", "deflate", "gzip;q=0", "*;q=0", "gzip;q=banana"):
        reply = whole(server, ("Accept-Encoding", accepted), fields=[HTML, ("ETag", '"v1"')])
        assert is_plain(reply), accepted
        assert (reply.get("etag"), reply.get("content-length")) == ('"v1"', str(LONG))
    assert is_plain(whole(server))


def test_what_is_left_alone(server: Server) -> None:
    for fields in (
        [("Content-Type", "image/png")],
        [HTML, ("Content-Encoding", "compress")],
        [HTML, ("Cache-Control", "no-store, no-transform")],
        [HTML, ("Content-Digest", "sha-256=:x:")],
        [("Content-Type", "application/grpc-web+json")],
    ):
        reply = whole(server, GZIP, fields=fields)
        assert (reply.get("content-length"), len(reply.body)) == (str(LONG), LONG), fields
        assert reply.get("content-encoding") in (None, "compress")
        assert "accept-encoding" not in vary(reply)
    short = ask(server, GZIP, fields=[HTML], pieces=[("x", 1023)], whole=True)
    assert (is_alone(short), len(short.body)) == (True, 1023)


def test_a_part_is_left_alone(server: Server) -> None:
    said = [HTML, ("Content-Range", f"bytes 0-{LONG - 1}/99999"), ("ETag", '"v1"')]
    reply = whole(server, GZIP, ("Range", f"bytes=0-{LONG - 1}"), fields=said, status=206)
    assert (is_plain(reply), reply.get("etag"), len(reply.body)) == (True, '"v1"', LONG)


def test_what_has_credentials_is_compressed_only_if_all_may_see_it(server: Server) -> None:
    """BREACH: the length of a compressed response tells what it has in common with the request."""
    for credentials in (("Cookie", "session=1"), ("Authorization", "Bearer x")):
        assert is_plain(whole(server, GZIP, credentials))
        public = whole(server, GZIP, credentials, fields=[HTML, ("Cache-Control", "public, max-age=60")])
        assert public.get("content-encoding") == "gzip"
    assert is_plain(whole(server, GZIP, fields=[HTML, ("Set-Cookie", "session=1")]))


def test_head_has_the_fields_of_get(server: Server) -> None:
    said = [HTML, ("ETag", '"v1"'), ("Content-Length", str(LONG))]
    reply = ask(server, GZIP, method="HEAD", fields=said, whole=True)
    assert (reply.get("content-encoding"), reply.get("etag"), vary(reply)) == ("gzip", 'W/"v1"', ["accept-encoding"])
    assert reply.get("content-length") is None
    with server.connect() as wire:
        wire.ask("HEAD", target(fields=said, whole=True), [GZIP])
        assert content(wire.ask("GET", target(fields=[HTML], pieces=[(LINE, 400)], whole=True), [GZIP])) != b""


def test_not_modified_has_the_tag_that_the_client_has(server: Server) -> None:
    for sent, expected in (('W/"v1"', 'W/"v1"'), ('"v1"', '"v1"')):
        reply = ask(server, GZIP, ("If-None-Match", sent), fields=[("ETag", '"v1"')], status=304, whole=True)
        assert (reply.status, reply.get("etag"), vary(reply)) == (304, expected, ["accept-encoding"])


def test_a_connection_goes_on_behind_a_compressed_response(server: Server) -> None:
    with server.connect() as wire:
        for coding in (*CODINGS, "identity", *CODINGS):
            for whole_body in (True, False):
                path = target(fields=[HTML], pieces=[(LINE, 400)], whole=whole_body)
                assert content(wire.ask("GET", path, [("Accept-Encoding", coding)])) == LINE.encode() * 400
