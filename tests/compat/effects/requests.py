"""What requests may look like: an effect for each setting."""

from __future__ import annotations

from pathlib import Path

from tests.compat.effects.common import fact_site, facts, raw, status
from tests.harness import CLOSE, Site
from tests.harness.proxy_protocol import LINE
from tests.harness.wire import request


def sees_limit_request_line(directory: Path) -> None:
    with Site("limit_request_line = 100\n") as server:
        assert status(server, request("GET", "/hello?" + "x" * 50)) == 200
        assert status(server, request("GET", "/hello?" + "x" * 200)) == 414


def sees_limit_request_fields(directory: Path) -> None:
    with Site("limit_request_fields = 5\n") as server:
        assert status(server, request("GET", "/hello", [("X", "1")] * 4)) == 200
        assert status(server, request("GET", "/hello", [("X", "1")] * 6)) == 431


def sees_limit_request_field_size(directory: Path) -> None:
    with Site("limit_request_field_size = 200\n") as server:
        assert status(server, request("GET", "/hello", [("X", "y" * 100)])) == 200
        assert status(server, request("GET", "/hello", [("X", "y" * 300)])) == 431


def sees_forwarded_allow_ips(directory: Path) -> None:
    fields = ("X-Forwarded-Proto", "https")
    with fact_site("forwarded_allow_ips = '10.0.0.0/8'\n") as server:
        assert facts(server, fields)["environ"]["wsgi.url_scheme"] == "http"
    with fact_site("forwarded_allow_ips = '*'\n") as server:
        assert facts(server, fields)["environ"]["wsgi.url_scheme"] == "https"


def announced(server: Site) -> tuple[int, bytes]:
    """What is answered behind a header of the PROXY protocol."""
    with server.connect() as wire:
        reply = wire.send(LINE, request("GET", "/", CLOSE)).reply()
    return reply.status, reply.body


def sees_proxy_protocol(directory: Path) -> None:
    for value, status_ in (("True", 200), ("'v1'", 200), ("False", 400)):
        with fact_site(f"proxy_protocol = {value}\n") as server:
            got, body = announced(server)
            assert (got, b'"REMOTE_ADDR": "203.0.113.9"' in body) == (status_, status_ == 200), (value, got, body)


def sees_proxy_allow_ips(directory: Path) -> None:
    with fact_site("proxy_protocol = 'v1'\nproxy_allow_ips = '192.0.2.1'\n") as server:
        assert announced(server)[0] == 403


def sees_secure_scheme_headers(directory: Path) -> None:
    with fact_site("secure_scheme_headers = {'X-SECURE': 'yes'}\n") as server:
        assert facts(server, ("X-Secure", "yes"))["environ"]["wsgi.url_scheme"] == "https"
        assert facts(server, ("X-Forwarded-Proto", "https"))["environ"]["wsgi.url_scheme"] == "http"


def sees_forwarder_headers(directory: Path) -> None:
    with fact_site("forwarder_headers = 'REMOTE_USER'\n") as server:
        assert facts(server, ("REMOTE_USER", "me"))["environ"]["HTTP_REMOTE_USER"] == "me"
        assert "HTTP_SOME_THING" not in facts(server, ("SOME_THING", "x"))["environ"]


def sees_header_map(directory: Path) -> None:
    with fact_site("header_map = 'dangerous'\n") as server:
        assert facts(server, ("SOME_THING", "x"))["environ"]["HTTP_SOME_THING"] == "x"
    with fact_site("header_map = 'refuse'\n") as server:
        assert server.get("/", ("SOME_THING", "x")).status == 400


def sees_permit_obsolete_folding(directory: Path) -> None:
    folded = b"GET / HTTP/1.1\r\nHost: h\r\nX-Long: one\r\n two\r\nConnection: close\r\n\r\n"
    with fact_site("permit_obsolete_folding = True\n") as server:
        answer = raw(server, folded)
        assert b"one two" in answer
    with fact_site("") as server:
        assert status(server, folded) == 400


def sees_strip_header_spaces(directory: Path) -> None:
    spaced = b"GET / HTTP/1.1\r\nHost: h\r\nX-Space : value\r\nConnection: close\r\n\r\n"
    with fact_site("strip_header_spaces = True\n") as server:
        assert b'"HTTP_X_SPACE": "value"' in raw(server, spaced)
    with fact_site("") as server:
        assert status(server, spaced) == 400


def sees_permit_unconventional_http_method(directory: Path) -> None:
    odd = request("gEt", "/hello")
    with Site("permit_unconventional_http_method = True\n") as server:
        assert status(server, odd) == 200
    with Site("") as server:
        assert status(server, odd) in (400, 501)


def sees_permit_unconventional_http_version(directory: Path) -> None:
    odd = request("GET", "/hello", version="3.0")
    with Site("permit_unconventional_http_version = True\n") as server:
        assert status(server, odd) == 200
    with Site("") as server:
        assert status(server, odd) in (400, 505)


def sees_casefold_http_method(directory: Path) -> None:
    config = "casefold_http_method = True\npermit_unconventional_http_method = True\n"
    with fact_site(config) as server:
        assert b'"REQUEST_METHOD": "GET"' in raw(server, request("get", "/", CLOSE))
