"""Hooks and loggers around ASGI requests: they see what they see around WSGI's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tricorn import log
from tricorn.config.command_line import read_arguments
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.gateway import observe_asgi


def scope(**changes: Any) -> dict[str, Any]:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https",
        "path": "/caf\xe9/x",
        "raw_path": b"/caf%C3%A9/x",
        "query_string": b"a=1&b=%20",
        "root_path": "",
        "headers": [(b"host", b"shop"), (b"accept", b"a"), (b"accept", b"b"), (b"content-length", b"3")],
        "client": ("10.0.0.1", 4000),
        "server": ("10.0.0.2", 443),
        **changes,
    }


def callbacks(**hooks: Any) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None]:
    in_file = Layer({name: Raw(hook, "gunicorn.conf.py") for name, hook in hooks.items()})
    config = resolve([in_file, read_arguments(["app"])])
    return observe_asgi.callbacks("the worker", config, log.make(config))


def test_where_nobody_observes_there_is_nothing() -> None:
    assert callbacks() == (None, None)


def test_observed_asgi_environ() -> None:
    environ = observe_asgi.environ_of(scope())
    del environ["asgi.scope"]
    assert environ == {
        "REQUEST_METHOD": "POST",
        "RAW_URI": "/caf%C3%A9/x?a=1&b=%20",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/caf\xc3\xa9/x",
        "QUERY_STRING": "a=1&b=%20",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "https",
        "REMOTE_ADDR": "10.0.0.1",
        "REMOTE_PORT": "4000",
        "SERVER_NAME": "10.0.0.2",
        "SERVER_PORT": "443",
        "HTTP_HOST": "shop",
        "HTTP_ACCEPT": "a,b",
        "CONTENT_LENGTH": "3",
    }


def test_the_environ_of_a_websocket_on_a_unix_socket_behind_a_root_path() -> None:
    websocket = scope(type="websocket", client=None, server=("/run/s", None), root_path="/caf\xe9")
    del websocket["method"]
    del websocket["raw_path"]
    environ = observe_asgi.environ_of(websocket)
    assert environ["REQUEST_METHOD"] == "GET"
    assert environ["SCRIPT_NAME"] == "/caf\xc3\xa9"
    assert environ["PATH_INFO"] == "/x"
    assert environ["RAW_URI"].startswith("/caf%C3%A9/x?")
    assert (environ["SERVER_NAME"], environ["SERVER_PORT"]) == ("shop", "443"), "PEP 3333: never empty strings"
    assert "REMOTE_ADDR" not in environ


def test_several_lines_of_cookies_are_joined_as_cookies_are() -> None:
    headers = [(b"cookie", b"a=1"), (b"accept", b"a"), (b"cookie", b"b=2; c=3"), (b"accept", b"b")]
    environ = observe_asgi.environ_of(scope(headers=headers))
    assert (environ["HTTP_COOKIE"], environ["HTTP_ACCEPT"]) == ("a=1; b=2; c=3", "a,b")


def test_hooks_see_one_request_from_its_beginning_to_its_end() -> None:
    seen: list[Any] = []

    def pre_request(worker: object, req: Any) -> None:
        seen.append((worker, req.method, req.uri, req.path, req.query, req.version, req.scheme, req.peer_addr))
        req.left = "a note"

    def post_request(worker: object, req: Any, environ: dict[str, Any], resp: Any) -> None:
        seen.append((worker, req.left, environ["RAW_URI"], resp.status, resp.status_code, resp.headers, resp.sent))

    before, after = callbacks(pre_request=pre_request, post_request=post_request)
    assert before is not None
    assert after is not None
    asked = scope()
    after(asked, before(asked), "201 Created", [("x", "y")], 7, 1000)
    assert seen == [
        (
            "the worker",
            "POST",
            "/caf%C3%A9/x?a=1&b=%20",
            "/caf%C3%A9/x",
            "a=1&b=%20",
            (1, 1),
            "https",
            ("10.0.0.1", 4000),
        ),
        ("the worker", "a note", "/caf%C3%A9/x?a=1&b=%20", "201 Created", 201, [("x", "y")], 7),
    ]


def test_post_request_alone_sees_the_same() -> None:
    seen: list[str] = []
    before, after = callbacks(post_request=lambda worker, req, environ, resp: seen.append(req.uri + resp.status))
    assert before is None
    assert after is not None
    after(scope(), None, "200 OK", [], 0, 1)
    assert seen == ["/caf%C3%A9/x?a=1&b=%20200 OK"]


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        (lambda req: setattr(req, "method", "PUT"), "method", "PUT"),
        (lambda req: setattr(req, "scheme", "http"), "scheme", "http"),
        (lambda req: setattr(req, "query", "c=2"), "query_string", b"c=2"),
        (lambda req: setattr(req, "path", "/na%C3%AFve"), "path", "/na\xefve"),
        (lambda req: setattr(req, "uri", "/other?x"), "raw_path", b"/other"),
    ],
)
def test_what_pre_request_changes_the_application_sees(change: Any, name: str, value: object) -> None:
    before, _ = callbacks(pre_request=lambda worker, req: change(req))
    assert before is not None
    asked = scope()
    before(asked)
    assert asked == scope(**{name: value})


def test_header_fields_may_come_and_go() -> None:
    def pre_request(worker: object, req: Any) -> None:
        req.headers = [field for field in req.headers if field[0] != "ACCEPT"]
        req.headers.append(("X-REQUEST-ID", "7"))

    before, _ = callbacks(pre_request=pre_request)
    assert before is not None
    asked = scope()
    before(asked)
    assert asked["headers"] == [(b"host", b"shop"), (b"content-length", b"3"), (b"x-request-id", b"7")]


def test_fields_that_nobody_changes_stay_as_they_came() -> None:
    before, _ = callbacks(pre_request=lambda worker, req: req.headers)
    assert before is not None
    asked = scope()
    before(asked)
    assert asked == scope()
