"""Hooks around requests, and the objects they are given."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn import log as logs
from tricorn.config.config import Config
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.gateway.observe import Request, Response, _joined, callbacks, named_server

Hook = Callable[..., None]


@pytest.fixture(autouse=True)
def _same_loggers() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("gunicorn.error", "gunicorn.access")]
    for logger in loggers:
        logger.propagate = True  # or pytest puts handlers of its own on it
    yield
    for logger in loggers:
        logger.handlers[:] = []
        logger.propagate = True


def configure(**settings: Any) -> Config:
    return resolve([Layer({name: Raw(value, "test") for name, value in settings.items()})])


def environ(**more: Any) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "POST",
        "RAW_URI": "/a%20b?q=1#part",
        "PATH_INFO": "/a b",
        "QUERY_STRING": "q=1",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "10.0.0.1",
        "REMOTE_PORT": "4711",
        "SCRIPT_NAME": "",
        "HTTP_HOST": "t",
        "HTTP_X_TWICE": "1,2",
        "CONTENT_TYPE": "text/plain",
        "CONTENT_LENGTH": "3",
        "wsgi.input": io.BytesIO(b"abc"),
        "wsgi.url_scheme": "http",
        **more,
    }


class TestRequest:
    def test_request_has_gunicorns_attributes(self) -> None:
        given = environ()
        req = Request(given)
        assert (req.method, req.uri, req.path, req.query, req.fragment) == (
            *("POST", "/a%20b?q=1#part", "/a%20b", "q=1", "part"),
        )
        assert req.version == (1, 1)
        assert req.headers == [
            ("HOST", "t"),
            ("X-TWICE", "1,2"),
            ("CONTENT-TYPE", "text/plain"),
            ("CONTENT-LENGTH", "3"),
        ]
        assert req.body is given["wsgi.input"]
        assert req.scheme == "http"
        assert req.peer_addr == req.remote_addr == ("10.0.0.1", 4711)
        assert req.trailers == []
        assert req.proxy_protocol_info is None
        announced = {"PROXY_PROTOCOL": "TCP4", "PROXY_ADDR": "198.51.100.1", "PROXY_PORT": "443"}
        assert Request(given | announced).proxy_protocol_info == {
            "proxy_protocol": "TCP4",
            "client_addr": "10.0.0.1",
            "client_port": 4711,
            "proxy_addr": "198.51.100.1",
            "proxy_port": 443,
        }

    @pytest.mark.parametrize(
        ("uri", "path"), [("/", "/"), ("//x/y", "//x/y"), ("http://h/p?q", "/p"), ("*", "*"), ("h:443", "h:443")]
    )
    def test_forms_of_targets(self, uri: str, path: str) -> None:
        assert Request(environ(RAW_URI=uri)).path == path

    def test_a_unix_socket_has_no_port(self) -> None:
        given = environ(REMOTE_ADDR="")
        del given["REMOTE_PORT"]
        assert Request(given).peer_addr == ""


class TestResponse:
    def test_response_has_gunicorns_attributes(self) -> None:
        resp = Response(Request(environ()), "404 Not Found", [("Content-Length", "7"), ("X", "y")], 7)
        assert (resp.status, resp.status_code, resp.sent, resp.response_length) == ("404 Not Found", 404, 7, 7)
        assert resp.headers == [("Content-Length", "7"), ("X", "y")]
        assert resp.headers_sent

    def test_without_a_length(self) -> None:
        assert Response(Request(environ()), "200 OK", [], 7).response_length is None


def observe(config: Config) -> tuple[Any, Any]:
    return callbacks(SimpleNamespace(log=logs.make(config)), config, logs.make(config))


def finish(after: Any, given: dict[str, Any], token: object, micros: int = 1_500_000) -> None:
    after(given, token, "200 OK", [("X", "y")], 5, micros)


@pytest.mark.parametrize(
    ("host", "scheme", "name", "port"),
    [
        ("shop", "http", "shop", "80"),
        ("shop:8000", "https", "shop", "8000"),
        ("shop:", "https", "shop", "443"),
        (":1", "http", "localhost", "1"),
        ("", "wss", "localhost", "443"),
        ("[::1]", "http", "[::1]", "80"),
        ("[::1]:8000", "http", "[::1]", "8000"),
    ],
)
def test_a_server_has_a_name_and_a_port(host: str, scheme: str, name: str, port: str) -> None:
    assert named_server(host, scheme) == {"SERVER_NAME": name, "SERVER_PORT": port}


def test_cookies_that_a_hook_sees_apart_are_joined_as_cookies_are() -> None:
    assert _joined([("COOKIE", "a=1"), ("ACCEPT", "a"), ("COOKIE", "b=2"), ("ACCEPT", "b")]) == {
        "HTTP_COOKIE": "a=1; b=2",
        "HTTP_ACCEPT": "a,b",
    }


def test_nobody_observes() -> None:
    assert observe(configure()) == (None, None)
    assert observe(configure(accesslog="-")) == (None, None)


def test_the_default_hook_logs_the_request_at_debug_level(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = observe(configure(loglevel="debug"))
    before(environ())
    assert "[DEBUG] POST /a%20b\n" in capsys.readouterr().err
    assert after is None


def test_hooks_share_the_request() -> None:
    seen: list[Any] = []

    def pre_request(worker: Any, req: Any) -> None:
        req.begun = 17
        seen.append(("pre", worker))

    def post_request(worker: Any, req: Any, environ: Any, resp: Any) -> None:
        seen.append(("post", worker, req.begun, environ, resp.status, resp.sent))

    config = configure(pre_request=pre_request, post_request=post_request)
    worker, given = object(), environ()
    before, after = callbacks(worker, config, logs.make(config))
    assert before is not None
    assert after is not None
    finish(after, given, before(given))
    assert seen == [("pre", worker), ("post", worker, 17, given, "200 OK", 5)]


@pytest.mark.parametrize("arity", [2, 3, 4])
def test_post_request_takes_two_three_or_four_arguments(arity: int) -> None:
    seen: list[int] = []
    hooks: dict[int, Hook] = {
        2: lambda worker, req: seen.append(2),
        3: lambda worker, req, environ: seen.append(3),
        4: lambda worker, req, environ, resp: seen.append(4),
    }
    before, after = observe(configure(post_request=hooks[arity]))
    assert before is None
    finish(after, environ(), None)
    assert seen == [arity]


def test_a_failing_pre_request_comes_up_and_post_request_comes_all_the_same() -> None:
    seen: list[str] = []

    def pre_request(worker: Any, req: Any) -> None:
        raise ValueError("marker")

    def post_request(worker: Any, req: Any, environ: Any, resp: Any) -> None:
        seen.append(req.method)

    before, after = observe(configure(pre_request=pre_request, post_request=post_request))
    with pytest.raises(ValueError, match="marker"):
        before(environ())
    finish(after, environ(), None)
    assert seen == ["POST"]


def test_a_failing_post_request_comes_up() -> None:
    def post_request(worker: Any, req: Any, environ: Any, resp: Any) -> None:
        raise ValueError("marker")

    _, after = observe(configure(post_request=post_request))
    with pytest.raises(ValueError, match="marker"):
        finish(after, environ(), None)


class TestChanges:
    """gunicorn makes the environ after pre_request: what the hook changes, the application sees."""

    def changed(self, hook: Callable[[Any], object], **more: Any) -> dict[str, Any]:
        def pre_request(worker: Any, req: Any) -> None:
            hook(req)

        given = environ(**more)
        before, _ = observe(configure(pre_request=pre_request))
        before(given)
        return given

    def test_hook_adds_a_header_to_the_environ(self) -> None:
        given = self.changed(lambda req: req.headers.append(("X-Request-ID", "7")))
        assert given["HTTP_X_REQUEST_ID"] == "7"
        assert {**given, "wsgi.input": None} == {**environ(HTTP_X_REQUEST_ID="7"), "wsgi.input": None}

    def test_a_field_less_and_another(self) -> None:
        def hook(req: Any) -> None:
            req.headers = {"host": "u", "content-type": "text/html"}

        given = self.changed(hook)
        assert given["HTTP_HOST"] == "u"
        assert given["CONTENT_TYPE"] == "text/html"
        assert "HTTP_X_TWICE" not in given
        assert "CONTENT_LENGTH" not in given

    def test_observed_request_target(self) -> None:
        def hook(req: Any) -> None:
            req.method, req.path, req.query, req.scheme = "PUT", "/p/%C3%A9", "x=2", "https"

        given = self.changed(hook, SCRIPT_NAME="/p")
        assert given["REQUEST_METHOD"] == "PUT"
        assert given["PATH_INFO"] == "/\u00c3\u00a9"
        assert given["QUERY_STRING"] == "x=2"
        assert given["wsgi.url_scheme"] == "https"

    def test_looking_changes_nothing(self) -> None:
        def hook(req: Any) -> None:
            for name in ("method", "uri", "path", "query", "fragment", "headers", "scheme", "body"):
                getattr(req, name)

        given = self.changed(hook, HTTP_CONTENT_TYPE="odd")
        assert {**given, "wsgi.input": None} == {**environ(HTTP_CONTENT_TYPE="odd"), "wsgi.input": None}


class TestAccess:
    def test_the_line_comes_before_the_hook(self, capsys: pytest.CaptureFixture[str]) -> None:
        seen: list[str] = []

        def post_request(worker: Any, req: Any, environ: Any, resp: Any) -> None:
            seen.append(capsys.readouterr().out)

        class Mine(logs.Logger):
            def now(self) -> str:
                return "today"

        text = "%(t)s %(r)s %(s)s %(b)s %(L)s %({x}o)s %({x-twice}i)s"
        config = configure(accesslog="-", logger_class=Mine, access_log_format=text, post_request=post_request)
        before, after = observe(config)
        assert before is None
        finish(after, environ(), None)
        assert seen == ["today POST /a%20b?q=1#part HTTP/1.1 200 5 1.500000 y 1,2\n"]

    def test_a_logger_class_that_only_counts(self) -> None:
        seen: list[Any] = []

        class Counting(logs.Logger):
            def access(self, resp: Any, req: Any, environ: Any, request_time: timedelta) -> None:
                seen.append((resp.status_code, req.method, request_time))

        _, after = observe(configure(logger_class=Counting))
        finish(after, environ(), None, micros=86_400_000_001)
        assert seen == [(200, "POST", timedelta(days=1, microseconds=1))]

    def test_one_that_fails_does_not_keep_the_hook_from_coming(self, capsys: pytest.CaptureFixture[str]) -> None:
        seen: list[int] = []

        class Failing(logs.Logger):
            def access(self, *_: object) -> None:
                raise ValueError("marker")

        _, after = observe(configure(logger_class=Failing, post_request=lambda worker, req: seen.append(1)))
        finish(after, environ(), None)
        assert seen == [1]
        assert "Exception in the access log" in capsys.readouterr().err
