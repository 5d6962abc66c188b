"""What a client and the log see of an application's exception."""

from __future__ import annotations

import pytest

from tests.harness import Server
from tests.harness.front_end_client import needs_an_end
from tests.harness.wire import Short


@pytest.mark.parametrize("when", ["call", "started", "first"])
def test_before_the_head_it_is_a_500(server: Server, version: str, when: str) -> None:
    with server.connect() as wire:
        reply = wire.get(f"/crash?when={when}", version=version)
        wire.closed()
    assert (reply.status, reply.reason) == (500, "Internal Server Error")
    assert reply.get("content-type") == "text/html"
    assert b"crash marker" not in reply.body
    assert b"Traceback" not in reply.body


def test_the_log_has_the_request_and_the_traceback(server: Server) -> None:
    server.get("/crash?when=call")
    server.log.wait(r"\[ERROR\] Error handling request.*/crash")
    server.log.wait("Traceback")
    server.log.wait(r"behaviours.crash\.py")
    server.log.wait("RuntimeError: crash marker: call")


def test_after_the_head_the_connection_ends(server: Server) -> None:
    needs_an_end(server)
    with server.connect() as wire:
        with pytest.raises(Short):
            wire.get("/crash?when=later")
        assert wire.ended() == b""
    server.log.wait("RuntimeError: crash marker: later")


def test_the_response_of_an_old_client_is_cut_too(server: Server) -> None:
    with server.connect() as wire:
        assert wire.get("/crash?when=later", version="1.0").body == b"begun"


def test_an_exception_without_a_text_is_an_exception_too(server: Server) -> None:
    assert server.get("/crash?when=unprintable").status == 500
    assert server.get("/hello").status == 200


def test_the_worker_survives(server: Server) -> None:
    before = server.worker_pids()
    for when in ("call", "started", "first", "unprintable"):
        server.get(f"/crash?when={when}")
    assert server.worker_pids() == before


@pytest.mark.beyond_reference("it ends the worker there, and whatever else that was doing")
def test_sys_exit_ends_the_request_and_not_the_worker(server: Server) -> None:
    before = server.worker_pids()
    assert server.get("/crash?when=exit").status == 500
    assert server.worker_pids() == before
    assert server.get("/hello").status == 200
