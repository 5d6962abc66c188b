"""`tricorn.testing.embedded`: the core on threads of the test process."""

from __future__ import annotations

import os
import socket
import threading
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import pytest
from tricorn.testing import embedded, serve
from tricorn.testing.in_process import Embedded, listen

pytestmark = pytest.mark.beyond_reference("it has no such function")


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=20) as response:
        body: bytes = response.read()
    return body


def is_refused(url: str) -> bool:
    host, port = urlsplit(url).hostname, urlsplit(url).port
    try:
        socket.create_connection((host, port), timeout=20).close()
    except ConnectionRefusedError:
        return True
    return False


def wsgi(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("200 OK", [])
    return [b"%d" % os.getpid()]


def test_the_application_and_the_test_share_their_memory() -> None:
    seen: list[str] = []

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        seen.append(environ["PATH_INFO"])
        return wsgi(environ, start_response)

    before = threading.active_count()
    with embedded(app) as server:
        assert get(f"{server.url}/path") == b"%d" % os.getpid()
        assert threading.active_count() == before + 4
    assert seen == ["/path"]
    assert is_refused(server.url)
    assert threading.active_count() == before
    server.stop()


def test_requests_run_at_the_same_time_on_as_many_threads_as_there_are() -> None:
    meeting = threading.Barrier(2, timeout=20)

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        meeting.wait()
        return wsgi(environ, start_response)

    with embedded(app, threads=2) as server:
        threads = [threading.Thread(target=get, args=(server.url,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not meeting.broken


def test_servers_side_by_side_and_one_after_another() -> None:
    for _ in range(3):
        with embedded(wsgi) as one, embedded(wsgi) as other:
            assert one.url != other.url
            assert get(one.url) == get(other.url)


def test_an_exception_is_a_500_and_in_the_log_of_the_test(capfd: pytest.CaptureFixture[str]) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        print("from the application", file=environ["wsgi.errors"])
        raise RuntimeError("marker")

    with embedded(app) as server, pytest.raises(urllib.error.HTTPError) as caught:
        get(server.url)
    assert caught.value.code == 500
    error = capfd.readouterr().err
    assert "from the application" in error
    assert "RuntimeError: marker" in error


def test_stop_lets_a_request_end_that_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()
    bodies: list[bytes] = []

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        begun.set()
        assert may_end.wait(20)
        return wsgi(environ, start_response)

    server = Embedded(app, listen("127.0.0.1", 0))
    have_ended = server._have_ended

    def in_stop() -> bool:
        may_end.set()
        return have_ended()

    monkeypatch.setattr(server, "_have_ended", in_stop)
    client = threading.Thread(target=lambda: bodies.append(get(server.url)))
    client.start()
    assert begun.wait(20)
    server.stop()
    client.join()
    assert bodies == [b"%d" % os.getpid()]


def test_a_server_that_was_forked_meanwhile_does_not_hold_its_port() -> None:
    with embedded(wsgi) as server, serve(wsgi) as other:
        assert get(other.url) != get(server.url)
        server.stop()
        assert is_refused(server.url)


def test_other_interfaces_are_refused() -> None:
    async def asgi(scope: Any, receive: Any, send: Any) -> None: ...

    with pytest.raises(TypeError, match=r"for ASGI: use serve\(\)"), embedded(asgi):
        pass
