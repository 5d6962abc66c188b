"""What an application gets that answers a target of `warmup`, and what is made of its answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tricorn.errors import BootError
from tricorn.gateway.warmup import ask_wsgi, target_of
from tricorn.gateway.warmup_asgi import make_scope

from tests.harness import with_each


def ask(application: Callable[..., Any], text: str) -> int | None:
    log: Any = logging.getLogger("test")
    return ask_wsgi(application, log, multithread=False, multiprocess=True, worker=0)(target_of(text))


def environ_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        found.update(environ)
        start_response("200 OK", [])
        return []

    assert ask(application, text) == 200
    return found


SERVERS = {
    "/x": ("http", "localhost", ("localhost", 80)),
    "http://shop.example/x": ("http", "shop.example", ("shop.example", 80)),
    "https://shop.example/x": ("https", "shop.example", ("shop.example", 443)),
    "https://shop.example:8443/x": ("https", "shop.example:8443", ("shop.example", 8443)),
    "http://[::1]/x": ("http", "[::1]", ("[::1]", 80)),
    "http://[::1]:8000/x": ("http", "[::1]:8000", ("[::1]", 8000)),
}


@with_each("case", list(SERVERS.items()))
def test_host_and_scheme_are_those_of_the_url(case: tuple[str, tuple[str, str, tuple[str, int]]]) -> None:
    text, (scheme, host, (name, port)) = case
    environ = environ_of(text)
    assert environ["wsgi.url_scheme"] == scheme
    assert environ["HTTP_HOST"] == host
    assert (environ["SERVER_NAME"], environ["SERVER_PORT"]) == (name, str(port))
    assert environ["PATH_INFO"] == "/x"
    scope = make_scope(target_of(text), "", {})
    assert (scope["scheme"], scope["server"]) == (scheme, (name, port))
    assert dict(scope["headers"])[b"host"] == host.encode()


def test_a_url_without_a_path_is_the_root() -> None:
    assert environ_of("https://shop.example")["PATH_INFO"] == "/"
    assert environ_of("https://shop.example?a=b")["RAW_URI"] == "/?a=b"


def test_paths_are_decoded_as_each_interface_has_them() -> None:
    environ = environ_of("/caf%C3%A9/a%20b?q=%C3%A9")
    assert environ["PATH_INFO"] == "/caf\xc3\xa9/a b"
    assert environ["QUERY_STRING"] == "q=%C3%A9"
    assert environ["RAW_URI"] == "/caf%C3%A9/a%20b?q=%C3%A9"
    scope = make_scope(target_of("/caf%C3%A9/a%20b?q=%C3%A9"), "", {})
    assert scope["path"] == "/café/a b"
    assert scope["raw_path"] == b"/caf%C3%A9/a%20b"
    assert scope["query_string"] == b"q=%C3%A9"


def test_a_path_may_have_the_mount_point_or_leave_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPT_NAME", "/shop")
    assert environ_of("/shop/login")["PATH_INFO"] == "/login"
    assert environ_of("/login")["PATH_INFO"] == "/login"
    assert environ_of("/shopping")["PATH_INFO"] == "/shopping"
    for text in ("/shop/login", "/login"):
        scope = make_scope(target_of(text), "/shop", {})
        assert (scope["path"], scope["root_path"]) == ("/shop/login", "/shop")
    assert make_scope(target_of("/shopping"), "/shop/", {})["path"] == "/shop/shopping"


def test_a_scope_has_a_copy_of_the_state() -> None:
    state = {"a": 1}
    scope = make_scope(target_of("/"), "", state)
    assert scope["state"] == state
    assert scope["state"] is not state


def test_the_response_is_read_to_its_end_and_closed() -> None:
    events: list[str] = []

    class Response:
        def __iter__(self) -> Iterator[bytes]:
            for number in range(2):
                events.append(f"piece {number}")
                yield b"x"

        def close(self) -> None:
            events.append("closed")

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Response:
        write = start_response("204 No Content", [])
        write(b"")
        return Response()

    assert ask(application, "/") == 204
    assert events == ["piece 0", "piece 1", "closed"]


def test_a_response_that_fails_is_closed() -> None:
    closed = []

    class Response:
        def __iter__(self) -> Iterator[bytes]:
            raise ValueError("marker")

        def close(self) -> None:
            closed.append(True)

    with pytest.raises(ValueError, match="marker"):
        ask(lambda environ, start_response: Response(), "/")
    assert closed == [True]


def test_the_status_of_an_error_that_came_late_counts() -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [])
        start_response("500 Internal Server Error", [], (None, None, None))
        return []

    assert ask(application, "/") == 500


def test_no_response_is_an_error() -> None:
    with pytest.raises(BootError, match="did not start a response"):
        ask(lambda environ, start_response: [], "/")
