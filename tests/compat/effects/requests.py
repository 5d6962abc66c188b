"""Limits and form of requests: an effect for each setting."""

from __future__ import annotations

from pathlib import Path

from tests.compat.effects.common import fact_site, facts, raw, status
from tests.compat.effects.shared import shared
from tests.harness import CLOSE, Site
from tests.harness.front_ends import cgi, uwsgi
from tests.harness.proxy_protocol import LINE
from tests.harness.wire import request


@shared
def plain() -> Site:
    return Site()


@shared
def plain_facts() -> Site:
    return fact_site("")


@shared
def narrow() -> Site:
    return Site(
        "worker_class = 'gthread'\n"
        "limit_request_line = 100\n"
        "limit_request_fields = 5\n"
        "limit_request_field_size = 200\n"
        "limit_request_body = 1000\n"
    )


@shared
def trusting() -> Site:
    return fact_site(
        "forwarded_allow_ips = '*'\n"
        "header_map = 'dangerous'\n"
        "permit_obsolete_folding = True\n"
        "strip_header_spaces = True\n"
        "permit_unconventional_http_method = True\n"
        "permit_unconventional_http_version = True\n"
        "raw_env = ['TRICORN_A=1=2']\n"
        "request_id = True\n"
        "server_header = 'shop/2'\n"
        "date_header = False\n"
    )


@shared
def announced_to() -> Site:
    return fact_site("proxy_protocol = True\ntrusted_proxies = '127.0.0.0/8'\nheader_map = 'refuse'\n")


@shared
def announced_by_v1() -> Site:
    return fact_site(
        "proxy_protocol = 'v1'\n"
        "secure_scheme_headers = {'X-SECURE': 'yes'}\n"
        "forwarder_headers = 'REMOTE_USER'\n"
        "casefold_http_method = True\n"
        "permit_unconventional_http_method = True\n"
    )


@shared
def distrusting() -> Site:
    return fact_site(
        "proxy_protocol = 'v1'\n"
        "proxy_allow_ips = '192.0.2.1'\n"
        "forwarded_allow_ips = '10.0.0.0/8'\n"
        "leniency = ['permit_unconventional_http_method']\n"
    )


def sees_limit_request_line(narrow: Site) -> None:
    assert status(narrow, request("GET", "/hello?" + "x" * 50)) == 200
    assert status(narrow, request("GET", "/hello?" + "x" * 200)) == 414


def sees_limit_request_fields(narrow: Site) -> None:
    assert status(narrow, request("GET", "/hello", [("X", "1")] * 4)) == 200
    assert status(narrow, request("GET", "/hello", [("X", "1")] * 6)) == 431


def sees_limit_request_field_size(narrow: Site) -> None:
    assert status(narrow, request("GET", "/hello", [("X", "y" * 100)])) == 200
    assert status(narrow, request("GET", "/hello", [("X", "y" * 300)])) == 431


def sees_forwarded_allow_ips(distrusting: Site, trusting: Site) -> None:
    for server, scheme in ((distrusting, "http"), (trusting, "https")):
        assert facts(server, ("X-Forwarded-Proto", "https"))["environ"]["wsgi.url_scheme"] == scheme


def announced(server: Site) -> tuple[int, bytes]:
    """The answer to a request behind a header of the PROXY protocol."""
    with server.connect() as wire:
        reply = wire.send(LINE, request("GET", "/", CLOSE)).reply()
    return reply.status, reply.body


def sees_proxy_protocol(announced_to: Site, announced_by_v1: Site, plain_facts: Site) -> None:
    for server, status_ in ((announced_to, 200), (announced_by_v1, 200), (plain_facts, 400)):
        got, body = announced(server)
        assert (got, b'"REMOTE_ADDR": "203.0.113.9"' in body) == (status_, status_ == 200), (got, body)


def _by_uwsgi(server: Site) -> int:
    with server.connect() as wire:
        return wire.send(uwsgi(cgi())).reply().status


def sees_protocol(directory: Path) -> None:
    with fact_site("protocol = 'uwsgi'\n") as server:
        assert _by_uwsgi(server) == 200


def sees_uwsgi_allow_ips(directory: Path) -> None:
    with fact_site("protocol = 'uwsgi'\nuwsgi_allow_ips = '192.0.2.1'\n") as server:
        assert _by_uwsgi(server) == 403


def sees_proxy_allow_ips(distrusting: Site) -> None:
    assert announced(distrusting)[0] == 403


def sees_secure_scheme_headers(announced_by_v1: Site) -> None:
    assert facts(announced_by_v1, ("X-Secure", "yes"))["environ"]["wsgi.url_scheme"] == "https"
    assert facts(announced_by_v1, ("X-Forwarded-Proto", "https"))["environ"]["wsgi.url_scheme"] == "http"


def sees_forwarder_headers(announced_by_v1: Site) -> None:
    assert facts(announced_by_v1, ("REMOTE_USER", "me"))["environ"]["HTTP_REMOTE_USER"] == "me"
    assert "HTTP_SOME_THING" not in facts(announced_by_v1, ("SOME_THING", "x"))["environ"]


def sees_header_map(trusting: Site, announced_to: Site) -> None:
    assert facts(trusting, ("SOME_THING", "x"))["environ"]["HTTP_SOME_THING"] == "x"
    assert announced_to.get("/", ("SOME_THING", "x")).status == 400


def sees_permit_obsolete_folding(trusting: Site, plain_facts: Site) -> None:
    folded = b"GET / HTTP/1.1\r\nHost: h\r\nX-Long: one\r\n two\r\nConnection: close\r\n\r\n"
    assert b"one two" in raw(trusting, folded)
    assert status(plain_facts, folded) == 400


def sees_strip_header_spaces(trusting: Site, plain_facts: Site) -> None:
    spaced = b"GET / HTTP/1.1\r\nHost: h\r\nX-Space : value\r\nConnection: close\r\n\r\n"
    assert b'"HTTP_X_SPACE": "value"' in raw(trusting, spaced)
    assert status(plain_facts, spaced) == 400


def sees_permit_unconventional_http_method(trusting: Site, plain_facts: Site) -> None:
    odd = request("gEt", "/hello")
    assert status(trusting, odd) == 200
    assert status(plain_facts, odd) in (400, 501)


def sees_permit_unconventional_http_version(trusting: Site, plain_facts: Site) -> None:
    odd = request("GET", "/hello", version="3.0")
    assert status(trusting, odd) == 200
    assert status(plain_facts, odd) in (400, 505)


def sees_casefold_http_method(announced_by_v1: Site) -> None:
    assert b'"REQUEST_METHOD": "GET"' in raw(announced_by_v1, request("get", "/", CLOSE))
