"""Fields that the operator adds to every response, or leaves out."""

from __future__ import annotations

import pytest

from tests.harness import ALL_CLASSES, Server

pytestmark = pytest.mark.beyond_reference("it has no such settings")


@ALL_CLASSES
def test_every_class_sends_what_the_operator_wants(worker_class: str) -> None:
    extra = ["--no-server-header", "--no-date-header", "--header", "X-Frame-Options: DENY", "--header", "X-A:1"]
    with Server(worker_class=worker_class, extra=extra) as server:
        for _ in range(2):
            reply = server.get("/hello")
            assert reply.status == 200
            if worker_class != "aiohttp":  # its applications have fields of their own
                assert reply.all("Server") == reply.all("Date") == []
            assert (reply.all("X-Frame-Options"), reply.all("X-A")) == (["DENY"], ["1"])


@ALL_CLASSES
def test_the_servers_own_pages_stay_as_they_are(worker_class: str) -> None:
    with (
        Server(worker_class=worker_class, extra=["--no-date-header", "--header", "X-A:1"]) as server,
        server.connect() as wire,
    ):
        wire.send(b"GET / HTTP/1.1\r\n\r\n").finish_sending()
        answer = wire.ended()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nDate: " in answer
    assert b"X-A" not in answer
