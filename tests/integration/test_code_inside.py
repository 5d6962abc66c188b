"""Code of the application that runs in the midst of the server's: nothing is locked or borrowed there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import Server, each, until
from tests.harness.frames import Frames
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("its access log and headers are Python's")

WSGI = pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent"))


@WSGI
def test_headers_that_write_while_they_are_read_hold_up_nobody(worker_class: str) -> None:
    with Server("inside:wsgi", worker_class=worker_class) as server, server.connect() as wire:
        for _ in range(2):
            reply = wire.get("/hints")
            assert (reply.status, reply.body, reply.get("x-made")) == (200, b"hints", "late")
            assert [interim.status for interim in reply.interims] == [103]


@WSGI
def test_a_wrong_header_may_speak_in_the_message_about_it(worker_class: str) -> None:
    with Server("inside:wsgi", worker_class=worker_class) as server:
        reply = server.get("/shown")
        assert reply.status == 500
        assert [interim.status for interim in reply.interims] == [103]
        server.log.wait("TypeError: a header value must be a str, not .*: a value that speaks")
        assert server.get("/").body == b"plain"


@pytest.mark.parametrize("worker_class", each("asgi"))
def test_an_atom_of_the_access_log_may_take_its_time(worker_class: str, tmp_path: Path) -> None:
    """The monitor answers what needs no Python meanwhile, and writes a line about it."""
    options = {"access_logfile": "-", "access_logformat": '"%(r)s" %(s)s %({user}e)s'}
    with (
        Server("inside:asgi", worker_class=worker_class, **options) as server,
        server.connect() as slow,
        server.connect() as broken,
        server.connect() as again,
    ):
        slow.send(request("GET", f"/?directory={tmp_path}"))
        until((tmp_path / "asked").exists, "the atom is being rendered")
        for wire in (broken, again):
            wire.send(b"GET / HTTP/1.1\r\nNo colon\r\n\r\n")
            assert wire.reply().status == 400
        assert not server.out.matching("alice")
        (tmp_path / "known").touch()
        assert slow.reply().status == 200
        server.out.wait("GET .* 200 alice")
        server.out.wait(" 400 ", count=2)


@pytest.mark.parametrize("worker_class", each("asgi"))
def test_headers_that_accept_a_websocket_while_they_are_read_do_not_lose_it(worker_class: str) -> None:
    with Server("inside:asgi", worker_class=worker_class) as server, Frames(server.address, "/") as socket:
        assert "was answered while" in str(socket.message())
        socket.goodbye()


OBJECTS = range(1, 41)


@pytest.mark.parametrize("worker_class", each("gevent"))
def test_a_finalizer_that_waits_holds_up_its_own_request_only(worker_class: str) -> None:
    """Wherever the collector finds it: before Python 3.12 that is where the next object is made."""
    waited = 0
    with (
        Server("inside:wsgi", worker_class=worker_class) as server,
        server.connect() as setter,
        server.connect() as victim,
        server.connect() as other,
    ):
        for after in OBJECTS:
            assert setter.get(f"/trap?after={after}").body == b"trap"
            victim.send(request("POST", "/", (), b"body"))
            free = other.get("/free")
            assert free.status == 200, server.log.text
            waited += int(free.body)
            reply = victim.reply()
            assert (reply.status, reply.body) == (200, b"body"), server.log.text
    assert waited, "no finalizer has waited"
