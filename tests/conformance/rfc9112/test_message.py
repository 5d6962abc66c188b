"""RFC 9112 sections 2 and 3: what a well-formed message may look like."""

from __future__ import annotations

from tests.harness import Server, with_each
from tests.harness.wire import request


def test_an_empty_line_before_a_request_is_ignored(keeping_server: Server) -> None:
    with keeping_server.connect() as wire:
        wire.send(b"\r\n", request("GET", "/hello"))
        assert wire.reply().status == 200
        wire.send(b"\r\n", request("GET", "/hello"))
        assert wire.reply().status == 200


@with_each(
    ("target", "host"),
    [
        ("http://example.org/hello", "example.org"),
        ("HTTP://EXAMPLE.org/hello", "example.ORG"),
        ("http://example.org:80/hello", "example.org"),
        ("http://example.org/hello", "example.org:80"),
        ("https://example.org/hello", "example.org:443"),
        ("http://[::1]:8000/hello", "[::1]:8000"),
    ],
)
def test_absolute_form(server: Server, version: str, target: str, host: str) -> None:
    """Section 3.2: Host is "identical to that authority component"; letters and default ports may differ."""
    with server.connect() as wire:
        assert wire.get(target, ("Host", host), version=version).body == b"Hello\n"


def test_absolute_form_of_an_old_client_without_host(server: Server) -> None:
    with server.connect() as wire:
        wire.send(b"GET http://example.org/hello HTTP/1.0\r\n\r\n")
        assert wire.reply().body == b"Hello\n"


@with_each("target", ["http://t", "http://t?x=1"])
def test_absolute_form_without_a_path(server: Server, target: str) -> None:
    """RFC 9110 section 4.2.3: "an empty path component is equivalent to an absolute path of '/'"."""
    assert server.get(target).status == 200


def test_asterisk_form(server: Server) -> None:
    with server.connect() as wire:
        assert wire.ask("OPTIONS", "*").status == 200


@with_each("host", ["t", "t:80", "example.org", "127.0.0.1:8000", "[::1]:80", ""])
def test_host_header(server: Server, host: str) -> None:
    assert server.get("/hello", ("Host", host)).status == 200


def test_an_old_client_needs_no_host(server: Server) -> None:
    with server.connect() as wire:
        wire.send(b"GET /hello HTTP/1.0\r\n\r\n")
        assert wire.reply().status == 200


def test_field_names_have_no_case(server: Server) -> None:
    with server.connect() as wire:
        wire.send(b"GET /echo HTTP/1.1\r\nHOST: t\r\nx-a: 1\r\nX-B: 2\r\n\r\n")
        got = wire.reply().json()
    assert (got["HTTP_X_A"][1], got["HTTP_X_B"][1]) == ("1", "2")


def test_a_field_without_a_space_after_its_colon(server: Server) -> None:
    with server.connect() as wire:
        wire.send(b"GET /echo HTTP/1.1\r\nHost:t\r\nX-A:1\r\n\r\n")
        assert wire.reply().json()["HTTP_X_A"][1] == "1"


def test_every_split_of_a_head(keeping_server: Server) -> None:
    whole = b"\r\nGET /echo?x=1 HTTP/1.1\r\nHost: t\r\nX-A:  b \r\nX-C: d\r\n\r\n"
    for at in range(1, len(whole)):
        with keeping_server.connect() as wire:
            wire.send(whole[:at])
            wire.send(whole[at:])
            got = wire.reply().json()
        assert (got["QUERY_STRING"][1], got["HTTP_X_A"][1], got["HTTP_X_C"][1]) == ("x=1", "b", "d")


def test_long_but_allowed(server: Server) -> None:
    assert server.get("/echo?" + "q" * 3900).status == 200
    assert server.get("/hello", ("X-Long", "v" * 8000)).status == 200
    assert server.get("/hello", *((f"X-{number}", "v") for number in range(98))).status == 200
