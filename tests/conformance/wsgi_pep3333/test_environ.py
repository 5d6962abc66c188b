"""What the application is told: the keys of environ, their types and their values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import REFERENCE, Server, with_each
from tests.harness.http2_client import Http2Client
from tests.harness.wire import Fields, request


def environ(server: Server, target: str = "/echo", fields: Fields = (), method: str = "GET", **more: Any) -> Any:
    with server.connect() as wire:
        reply = wire.ask(method, target, fields, **more)
    assert reply.status == 200, server.log.text[-3000:]
    return reply.json()


def test_keys_every_request_has(server: Server, version: str) -> None:
    got = environ(server, "/echo/a%20b?x=1&y=%20", version=version)
    expected = {
        "REQUEST_METHOD": ["str", "GET"],
        "SCRIPT_NAME": ["str", ""],
        "PATH_INFO": ["str", "/echo/a b"],
        "QUERY_STRING": ["str", "x=1&y=%20"],
        "RAW_URI": ["str", "/echo/a%20b?x=1&y=%20"],
        "SERVER_PROTOCOL": ["str", "HTTP/2.0" if server.wire_type is Http2Client else f"HTTP/{version}"],
        "HTTP_HOST": ["str", "t"],
        "wsgi.url_scheme": ["str", server.scheme],
        "wsgi.version": ["tuple", [1, 0]],
        "wsgi.run_once": ["bool", False],
        "wsgi.input_terminated": ["bool", True],
    }
    assert {key: got.get(key) for key in expected} == expected


def test_how_the_application_is_called(server: Server) -> None:
    got = environ(server)
    one_at_a_time = not {"sync", "tornado"}.isdisjoint(server.argv)
    assert got["wsgi.multithread"] == ["bool", not one_at_a_time]
    assert got["wsgi.multiprocess"] == ["bool", False]


def test_environ_objects(server: Server) -> None:
    got = environ(server)
    for key in ("wsgi.input", "wsgi.errors", "wsgi.file_wrapper", "wsgi.early_hints", "gunicorn.socket"):
        assert key in got, key


def test_server_software_names_the_server(server: Server) -> None:
    kind, name = environ(server)["SERVER_SOFTWARE"]
    assert kind == "str"
    assert name.startswith("gunicorn/")
    assert REFERENCE or "(tricorn/" in name


def test_addresses_over_tcp(tcp_server: Server) -> None:
    with tcp_server.connect() as wire:
        port = wire.sock.getsockname()[1]
        got = wire.get("/echo", ("Host", "example.org:1")).json()
    assert got["REMOTE_ADDR"] == ["str", "127.0.0.1"]
    assert got["REMOTE_PORT"] == ["str", str(port)]
    assert got["SERVER_NAME"] == ["str", "127.0.0.1"]
    assert got["SERVER_PORT"] == ["str", str(tcp_server.port)]


def test_addresses_over_a_unix_socket(server: Server) -> None:
    if not isinstance(server.address, str):
        pytest.skip("a unix socket is needed")
    got = environ(server, fields=[("Host", "example.org:8080")])
    assert got["REMOTE_ADDR"] == ["str", ""]
    assert got["SERVER_NAME"] == ["str", "example.org"]
    assert got["SERVER_PORT"] == ["str", "8080"]
    got = environ(server, fields=[("Host", "example.org")])
    assert got["SERVER_NAME"] == ["str", "example.org"]
    assert got["SERVER_PORT"] == ["str", "80"]


@pytest.mark.beyond_reference("the path of the socket, and an empty port")
@with_each(("host", "name", "port"), [("", "localhost", "80"), ("a:", "a", "80"), (":81", "localhost", "81")])
def test_a_server_has_a_name_and_a_port_whatever_the_host(server: Server, host: str, name: str, port: str) -> None:
    """PEP 3333: "SERVER_NAME and SERVER_PORT can never be empty strings"."""
    got = environ(server, fields=[("Host", host)])
    assert got["HTTP_HOST"] == ["str", host]
    if isinstance(server.address, str):
        assert (got["SERVER_NAME"][1], got["SERVER_PORT"][1]) == (name, port)
    else:
        assert (got["SERVER_NAME"][1], got["SERVER_PORT"][1]) == ("127.0.0.1", str(server.port))


@pytest.mark.beyond_reference("the path of the socket, and an empty port")
def test_a_server_has_a_name_and_a_port_without_a_host(server: Server) -> None:
    with server.connect() as wire:
        wire.send(b"GET /echo HTTP/1.0\r\nX-Forwarded-Proto: https\r\n\r\n")
        got = wire.reply().json()
    assert got["SERVER_NAME"][1]
    expected = "443" if isinstance(server.address, str) else str(server.port)
    assert got["SERVER_PORT"] == ["str", expected]


def test_fields_become_http_keys(server: Server, version: str) -> None:
    fields = [
        ("X-One", "1"),
        ("Accept", "a/b"),
        ("X-Dash-Ed", "d"),
        ("User-Agent", "t\u00e9st"),
        ("X-Empty", ""),
    ]
    got = environ(server, fields=fields, version=version)
    assert got["HTTP_X_ONE"] == ["str", "1"]
    assert got["HTTP_ACCEPT"] == ["str", "a/b"]
    assert got["HTTP_X_DASH_ED"] == ["str", "d"]
    assert got["HTTP_USER_AGENT"] == ["str", "t\u00e9st"]
    assert got["HTTP_X_EMPTY"] == ["str", ""]


def test_repeated_fields_are_joined(server: Server) -> None:
    got = environ(server, fields=[("X-Many", "a"), ("x-many", "b, c"), ("X-MANY", "d")])
    assert got["HTTP_X_MANY"] == ["str", "a,b, c,d"]


@pytest.mark.beyond_reference("it joins them by commas")
def test_cookies_are_joined_as_cookies_are(server: Server) -> None:
    """RFC 9113 section 8.2.3; a comma would be a part of the first value (RFC 6265 section 4.1.1)."""
    got = environ(server, fields=[("Cookie", "a=1"), ("X-Many", "x"), ("cookie", "b=2; c=3"), ("COOKIE", "d=4")])
    assert got["HTTP_COOKIE"] == ["str", "a=1; b=2; c=3; d=4"]


def test_spaces_around_a_value_are_no_part_of_it(server: Server) -> None:
    got = environ(server, fields=[("X-Pad", " \t padded \t ")])
    assert got["HTTP_X_PAD"] == ["str", "padded"]


def test_names_with_underscore_do_not_pass_for_names_with_dash(server: Server) -> None:
    got = environ(server, fields=[("X-Real", "true"), ("X_Real", "forged"), ("X_Only", "forged")])
    assert got["HTTP_X_REAL"] == ["str", "true"]
    assert "HTTP_X_ONLY" not in got


def test_content_type_and_length_have_no_prefix(server: Server, version: str) -> None:
    got = environ(server, fields=[("Content-Type", "text/x")], method="POST", body=b"abc", version=version)
    assert got["CONTENT_TYPE"] == ["str", "text/x"]
    assert got["CONTENT_LENGTH"] == ["str", "3"]
    assert "HTTP_CONTENT_TYPE" not in got
    assert "HTTP_CONTENT_LENGTH" not in got


def test_no_content_length_without_a_body(server: Server) -> None:
    assert environ(server).get("CONTENT_LENGTH", ["str", ""])[1] == ""


@with_each("body", [b"3\r\nabc\r\n0\r\n\r\n", b"0\r\n\r\n"])
def test_a_chunked_body_that_is_whole_has_its_length(server: Server, body: bytes) -> None:
    with server.connect() as wire:
        wire.send(request("POST", "/echo", [("Transfer-Encoding", "chunked")]), body)
        got = wire.reply().json()
    if not REFERENCE:  # gunicorn gives the body as it comes, without a length
        assert got["CONTENT_LENGTH"] == ["str", "3" if b"abc" in body else "0"]
        assert "HTTP_TRANSFER_ENCODING" not in got
    assert got["wsgi.input_terminated"] == ["bool", True]


@with_each(
    ("target", "path", "query"),
    [
        ("/echo", "/echo", ""),
        ("/echo?", "/echo", ""),
        ("/echo/%e4%20%2F", "/echo/\u00e4 /", ""),
        ("/echo/%C3%A9", "/echo/\u00c3\u00a9", ""),
        ("/echo/%zz%4", "/echo/%zz%4", ""),
        ("/echo//b/../c", "/echo//b/../c", ""),
        ("/echo;p=1?a?b", "/echo;p=1", "a?b"),
        ("/echo?q=%00%20+", "/echo", "q=%00%20+"),
        ("/echo/%00", "/echo/\0", ""),
    ],
)
def test_environ_path_of_targets(server: Server, target: str, path: str, query: str) -> None:
    # Another first segment than `echo` itself still ends at the echo only where the path begins with it.
    if not target.startswith(("/echo/", "/echo?")) and target != "/echo":
        target = target.replace("/echo", "/echo/", 1)
        path = path.replace("/echo", "/echo/", 1)
    got = environ(server, target)
    assert got["PATH_INFO"] == ["str", path]
    assert got["QUERY_STRING"] == ["str", query]
    assert got["RAW_URI"] == ["str", target]


def test_absolute_form(server: Server) -> None:
    got = environ(server, "http://other.example/echo/x?y=1", [("Host", "other.example")])
    assert got["PATH_INFO"] == ["str", "/echo/x"]
    assert got["QUERY_STRING"] == ["str", "y=1"]
    assert got["RAW_URI"] == ["str", "http://other.example/echo/x?y=1"]


@with_each("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "M-SEARCH"])
def test_environ_request_method(server: Server, method: str) -> None:
    assert environ(server, method=method)["REQUEST_METHOD"] == ["str", method]


def test_scheme_of_a_trusted_front_end(server: Server) -> None:
    assert environ(server, fields=[("X-Forwarded-Proto", "https")])["wsgi.url_scheme"] == ["str", "https"]
    assert environ(server, fields=[("X-Forwarded-Proto", "http")])["wsgi.url_scheme"] == ["str", "http"]


@pytest.mark.beyond_reference("it compares with case, and knows no scheme of WebSockets")
def test_schemes_of_a_trusted_front_end_compare_without_case(server: Server) -> None:
    for value in ("HTTPS", "wss", "WSS"):
        assert environ(server, fields=[("X-Forwarded-Proto", value)])["wsgi.url_scheme"] == ["str", "https"], value


def test_script_name_of_a_trusted_front_end(server: Server) -> None:
    got = environ(server, "/echo/here", fields=[("SCRIPT_NAME", "")])
    assert got["SCRIPT_NAME"] == ["str", ""]
    with server.connect() as wire:
        # The gallery looks at PATH_INFO, so that the mount point comes before the behaviour's name.
        got = wire.get("/mount/echo/here", ("SCRIPT_NAME", "/mount")).json()
    assert got["SCRIPT_NAME"] == ["str", "/mount"]
    assert got["PATH_INFO"] == ["str", "/echo/here"]


def test_a_path_outside_the_mount_point_is_reported(server: Server) -> None:
    with server.connect() as wire:
        assert wire.get("/elsewhere", ("SCRIPT_NAME", "/mount")).status == 500
    if not REFERENCE:
        server.log.wait(r"\[ERROR\] Error handling request GET /elsewhere: .*does not start with SCRIPT_NAME")


def test_the_environment_of_the_process_is_not_merged(server: Server) -> None:
    got = environ(server)
    assert "PATH" not in got
    assert "HOME" not in got


def test_environ_is_a_fresh_dict_each_time(keeping_server: Server) -> None:
    with keeping_server.connect() as wire:
        first = wire.get("/echo", ("X-Once", "1")).json()
        second = wire.get("/echo").json()
    assert "HTTP_X_ONCE" in first
    assert "HTTP_X_ONCE" not in second


def test_the_raw_socket(tcp_server: Server) -> None:
    with tcp_server.connect() as wire:
        local = list(wire.sock.getsockname())
        facts = wire.get("/rawsocket").json()
    assert facts["is_socket"]
    assert facts["peer"] == local
    assert facts["local"] == ["127.0.0.1", tcp_server.port]


def test_errors_go_to_the_error_log(server: Server) -> None:
    tag = f"tag{id(object())}"
    assert server.get(f"/errors?text={tag}").status == 200
    for way in ("write", "lines", "print"):
        server.log.wait(f"{way} {tag}")
