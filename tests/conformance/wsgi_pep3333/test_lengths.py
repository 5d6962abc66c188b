"""Responses whose Content-Length is not the truth, and responses that must not have a body."""

from __future__ import annotations

import pytest

from tests.harness import Server, with_each
from tests.harness.wire import Short, request


@pytest.mark.beyond_reference("a body that is too short keeps the connection open")
@with_each("pieces", {"whole": "", "pieces": "&pieces"})
def test_a_body_that_is_too_short_ends_the_connection(server: Server, version: str, pieces: str) -> None:
    with server.connect() as wire:
        wire.send(request("GET", f"/length?says=100&sends=10{pieces}", version=version), request("GET", "/hello"))
        with pytest.raises(Short):
            wire.reply()
        assert b"Hello" not in wire.ended()
    server.log.wait("(?i)content-length|shorter")


@with_each("pieces", {"whole": "", "pieces": "&pieces"})
def test_a_body_that_is_too_long_is_cut(server: Server, version: str, pieces: str) -> None:
    with server.connect() as wire:
        wire.send(request("GET", f"/length?says=5&sends=100{pieces}", version=version))
        reply = wire.reply()
        assert reply.body == b"xxxxx"
        if reply.closes:
            wire.closed()
        else:
            assert wire.get("/hello").body == b"Hello\n"


@with_each("status", ["204 No Content", "304 Not Modified"])
@with_each("body", {"none": "", "some": "&sends=50", "generator": "&sends=50&generator"})
def test_statuses_without_a_body(server: Server, version: str, status: str, body: str) -> None:
    with server.connect() as wire:
        reply = wire.get(f"/bodiless?status={status.replace(' ', '%20')}{body}", version=version)
        assert f"{reply.status} {reply.reason}" == status
        assert reply.get("transfer-encoding") is None
        assert reply.get("x-kept") == "yes"
        if reply.closes:
            wire.closed()
        else:
            assert wire.get("/hello").body == b"Hello\n"


def test_a_204_has_no_length(server: Server) -> None:
    assert server.get("/bodiless?says=50&sends=50").get("content-length") is None


def test_a_304_may_tell_the_length_it_would_have_had(server: Server) -> None:
    assert server.get("/bodiless?status=304%20Not%20Modified&says=50").get("content-length") == "50"


@with_each("path", ["/hello", "/stream", "/writes", "/iterables?kind=generator", "/bodiless?status=200%20OK"])
def test_content_length_of_head(server: Server, version: str, path: str) -> None:
    with server.connect() as wire:
        wire.send(request("HEAD", path, version=version))
        reply = wire.reply("HEAD")
        assert reply.status == 200
        if reply.closes:
            wire.closed()
        else:
            assert wire.get("/hello").body == b"Hello\n"


def test_head_keeps_the_length(server: Server, version: str) -> None:
    with server.connect() as wire:
        assert wire.ask("HEAD", "/hello", version=version).get("content-length") == "6"


@with_each(
    ("path", "length"),
    [
        ("/iterables?kind=single&raw", "11"),
        ("/iterables?kind=empty_list&raw", "0"),
        ("/iterables?kind=list&raw", None),
    ],
)
@pytest.mark.beyond_reference("bodies that are all at hand are chunked")
def test_a_body_that_is_all_at_hand_gets_its_length(server: Server, path: str, length: str | None) -> None:
    """PEP 3333 lets the server compute it when the iterable has one element."""
    reply = server.get(path)
    assert reply.framing in ("length", "chunked")
    if length is not None:
        assert reply.get("content-length") == length
