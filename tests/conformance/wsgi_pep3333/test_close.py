"""close() of the iterable is called once, however the response ends."""

from __future__ import annotations

import uuid

import pytest

from tests.harness import Server, until, with_each
from tests.harness.wire import Malformed, request


def seen(server: Server, tag: str) -> int:
    return int(server.get(f"/closing?seen={tag}").body)


def new_tag() -> str:
    """The name that one iterable is counted by."""
    return uuid.uuid4().hex


@with_each("how", ["whole", "list", "no_body", "short_length", "raise_first", "raise_later"])
def test_close_is_called_once(server: Server, version: str, how: str) -> None:
    tag = new_tag()
    with server.connect() as wire:
        try:
            wire.get(f"/closing?tag={tag}&how={how}&raw", version=version)
        except Malformed:
            assert how == "raise_later"
    until(lambda: seen(server, tag), "close() is called")
    assert seen(server, tag) == 1


def test_close_is_called_after_head(server: Server) -> None:
    tag = new_tag()
    with server.connect() as wire:
        wire.ask("HEAD", f"/closing?tag={tag}&raw")
    until(lambda: seen(server, tag), "close() is called")
    assert seen(server, tag) == 1


@with_each("end", ["close", "reset"])
def test_when_the_client_goes_away(server: Server, end: str) -> None:
    tag = new_tag()
    wire = server.connect()
    wire.send(request("GET", f"/closing?tag={tag}&how=endless&raw"))
    wire.wait_begun()
    getattr(wire, end)()
    until(lambda: seen(server, tag), "close() is called")
    assert seen(server, tag) == 1
    assert server.get("/hello").status == 200


def test_an_error_in_close_is_logged_and_hurts_nobody(server: Server) -> None:
    tag = new_tag()
    with server.connect() as wire:
        wire.get(f"/closing?tag={tag}&how=raise_close&raw", version="1.0")
    server.log.wait(rf"{tag}: close\(\) fails")
    assert server.get("/hello").status == 200


def test_the_file_in_a_file_wrapper(server: Server, version: str) -> None:
    tag = new_tag()
    with server.connect() as wire:
        wire.get(f"/files?kind=read_only&tag={tag}&raw", version=version)
    until(lambda: seen(server, tag), "close() is called")
    assert seen(server, tag) == 1


def test_the_validator_saw_no_iterable_left_open(server: Server) -> None:
    """Last in this file on purpose: `wsgiref.validate` reports forgotten close() calls on wsgi.errors."""
    assert not server.log.matching("garbage collected without being closed")


@pytest.mark.beyond_reference("it iterates for as long as the application likes")
@with_each(
    ("method", "query"),
    {
        "head": ("HEAD", ""),
        "204": ("GET", "&status=204%20No%20Content"),
        "304": ("GET", "&status=304%20Not%20Modified"),
        "length": ("GET", "&says=100000"),
        "length_in_one_piece": ("GET", "&says=65536"),
    },
)
def test_when_enough_was_sent(server: Server, method: str, query: str) -> None:
    """An iterable without end is not asked for ever when nothing of it can be sent any more."""
    tag = new_tag()
    with server.connect() as wire:
        wire.ask(method, f"/closing?tag={tag}&how=endless{query}&raw")
    until(lambda: seen(server, tag), "close() is called")
    assert seen(server, tag) == 1


@with_each("query", {"chunked": "", "length": "&says=10"})
def test_code_behind_the_last_piece_runs(server: Server, query: str) -> None:
    """Though its piece is all that the length allows: the iterable is asked once more."""
    tag = new_tag()
    assert server.get(f"/closing?tag={tag}&how=last_words{query}&raw").body == b"helloworld"
    until(lambda: seen(server, tag), "it runs")
