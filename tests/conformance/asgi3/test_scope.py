"""The HTTP connection scope: its keys, and the exact types and values of them (ASGI, HTTP 2.5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.asgi3.play import ANSWER, Stage, literal
from tests.conftest import Pool
from tests.harness import Server
from tests.harness.http2_client import Http2Client
from tests.harness.wire import request

OPTIONAL = {"raw_path", "root_path", "client", "server", "state", "extensions"}


def scope(server: Server, target: str = "/scope", *fields: tuple[str, str], **more: Any) -> dict[str, Any]:
    return dict(literal(server, target, *fields, **more))


def headers(server: Server, *fields: tuple[str, str], **more: Any) -> list[tuple[bytes, bytes]]:
    got = scope(server, "/scope", *fields, **more)["headers"]
    for pair in got:
        assert len(pair) == 2
        assert [type(part) for part in pair] == [bytes, bytes]
    return [(name.lower(), value) for name, value in got]


def test_http_scope_of_every_request(server: Server, version: str) -> None:
    got = scope(server, "/scope/a%20b?x=1&y=%20", version=version)
    expected = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "2" if server.wire_type is Http2Client else version,
        "method": "GET",
        "scheme": server.scheme,
        "path": "/scope/a b",
        "raw_path": b"/scope/a%20b",
        "query_string": b"x=1&y=%20",
        "root_path": "",
    }
    assert {key: got.get(key) for key in expected} == expected
    assert set(got) - set(expected) <= OPTIONAL | {"headers"}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "M-SEARCH"])
def test_scope_method(server: Server, method: str) -> None:
    assert scope(server, method=method)["method"] == method


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/", "/", b""),
        ("/?", "/", b""),
        ("/a?b?c", "/a", b"b?c"),
        ("/%C3%A9/%E2%82%AC", "/\u00e9/\u20ac", b""),
        ("/%2F%2f%25", "///%", b""),
        ("/%e4", "/\ufffd", b""),
        ("/%zz%4", "/%zz%4", b""),
        ("/a+b?c+d", "/a+b", b"c+d"),
        ("//b/../c", "//b/../c", b""),
        ("/a;p=1", "/a;p=1", b""),
        ("/a?q=%00%20+%C3%A9", "/a", b"q=%00%20+%C3%A9"),
    ],
)
def test_scope_path_and_query_of_targets(server: Server, target: str, path: str, query: bytes) -> None:
    got = scope(server, target)
    assert (got["path"], got["query_string"]) == (path, query)
    assert got["raw_path"] == target.partition("?")[0].encode()


def test_absolute_form(server: Server) -> None:
    got = scope(server, "http://t/scope/x?y=1")
    assert (got["path"], got["raw_path"], got["query_string"]) == ("/scope/x", b"/scope/x", b"y=1")


def test_header_fields_are_pairs_of_bytes_with_names_in_lower_case(server: Server, version: str) -> None:
    got = scope(server, "/scope", ("X-One", "1"), ("User-Agent", "t\u00e9st"), ("X-Empty", ""), version=version)
    assert [tuple(pair) for pair in got["headers"]] == [
        (b"host", b"t"),
        (b"x-one", b"1"),
        (b"user-agent", "t\u00e9st".encode("latin-1")),
        (b"x-empty", b""),
    ]


def test_repeated_fields_stay_apart_and_in_order(server: Server) -> None:
    got = headers(server, ("X-Many", "a"), ("Cookie", "a=1"), ("x-many", "b, c"), ("X-MANY", "d"), ("Cookie", "b=2"))
    assert [value for name, value in got if name == b"x-many"] == [b"a", b"b, c", b"d"]
    joined = server.wire_type is Http2Client  # RFC 9113 section 8.2.3
    assert [value for name, value in got if name == b"cookie"] == ([b"a=1; b=2"] if joined else [b"a=1", b"b=2"])


def test_spaces_around_a_value_are_no_part_of_it(server: Server) -> None:
    assert (b"x-pad", b"padded \t x") in headers(server, ("X-Pad", " \t padded \t x \t "))


def test_fields_of_the_body(server: Server) -> None:
    got = headers(server, ("Content-Type", "a/b"), method="POST", body=b"abc")
    assert (b"content-type", b"a/b") in got
    assert (b"content-length", b"3") in got


def test_addresses_over_tcp(tcp_server: Server) -> None:
    with tcp_server.connect() as wire:
        port = wire.sock.getsockname()[1]
        wire.send(request("GET", "/scope"))
        text = wire.reply().text
    assert f"'client': ('127.0.0.1', {port})" in text.replace("[", "(").replace("]", ")")
    assert f"'server': ('127.0.0.1', {tcp_server.port})" in text.replace("[", "(").replace("]", ")")


def test_addresses_over_a_unix_socket(unix_server: Server) -> None:
    got = scope(unix_server)
    assert got.get("client") is None
    assert tuple(got["server"]) == (unix_server.address, None)


def test_the_scheme_of_a_trusted_front_end(server: Server) -> None:
    assert scope(server, "/scope", ("X-Forwarded-Proto", "https"))["scheme"] == "https"
    assert scope(server, "/scope", ("X-Forwarded-Proto", "http"))["scheme"] == "http"


@pytest.mark.parametrize("name", ["http.response.early_hint", "http.response.trailers"])
def test_extensions_are_announced(server: Server, name: str) -> None:
    assert scope(server)["extensions"][name] == {}


def test_what_one_request_does_to_its_scope_is_not_seen_by_the_next(server: Server, stage: Stage) -> None:
    with server.connect() as wire:
        for _ in range(2):
            wire.send(stage.request(("tell_scope",), ("spoil",), *ANSWER))
            assert wire.reply().body == b"done"
    first, second = stage.told(2)
    assert "changed" not in repr(second)
    for told in (first, second):
        told["extensions"].get("tricorn", {}).pop("queue_time", None)  # a measurement of each request
    for key in ("asgi", "headers", "state", "extensions"):
        assert first.get(key) == second.get(key)


def test_state_is_a_shallow_copy_of_what_the_lifespan_left(server: Server, stage: Stage) -> None:
    assert scope(server)["state"] == {"shared": ["from the lifespan"], "own": "from the lifespan"}
    stage.play(("spoil",), *ANSWER)
    assert scope(server)["state"] == {"shared": ["from the lifespan"], "own": "from the lifespan"}


@pytest.mark.beyond_reference("not asked there")
def test_the_root_path_of_the_setting(pool: Pool) -> None:
    server = pool.get("asgi.play:application", worker_class="asgi", root_path="/mounted")
    assert scope(server)["root_path"] == "/mounted"
    assert isinstance(scope(server)["path"], str)


def test_names_with_an_underscore_are_seen(server: Server) -> None:
    """No environ makes two names one."""
    got = headers(server, ("X-Token", "a"), ("X_Token", "b"), ("_", "c"))
    assert [pair for pair in got if pair[0] in (b"x-token", b"x_token", b"_")] == [
        (b"x-token", b"a"),
        (b"x_token", b"b"),
        (b"_", b"c"),
    ]


def test_names_with_an_underscore_speak_for_no_front_end(server: Server) -> None:
    got = scope(server, "/scope", ("X_Forwarded_For", "203.0.113.9"), ("X_Forwarded_Proto", "https"))
    assert got["scheme"] == server.scheme
    assert "203.0.113.9" not in (got.get("client") or ())


def test_the_scheme_of_a_front_end(server: Server) -> None:
    told = {value: scope(server, "/scope", ("X-Forwarded-Proto", value))["scheme"] for value in SCHEMES}
    assert told == SCHEMES


def test_the_port_of_the_client_of_a_front_end(server: Server) -> None:
    told = {value: tuple(scope(server, "/scope", ("X-Forwarded-For", value))["client"]) for value in CLIENTS}
    assert told == CLIENTS


SCHEMES = {
    "https": "https",
    "HTTPS": "https",
    "wss": "https",
    "Wss": "https",
    "http, https": "https",
    "http": "http",
    "ws": "http",
    "https, http": "http",
}
CLIENTS = {
    "203.0.113.9": ("203.0.113.9", 0),
    "203.0.113.9:4711": ("203.0.113.9", 4711),
    "[2001:db8::1]:443": ("2001:db8::1", 443),
    "2001:db8::1": ("2001:db8::1", 0),
    "192.0.2.1:1, 203.0.113.9:4711": ("203.0.113.9", 4711),
}
