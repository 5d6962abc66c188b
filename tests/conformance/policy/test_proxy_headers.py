"""`trusted_proxy_headers`: what front ends say is applied alike under every class and interface."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Pool
from tests.harness import APPS, Server
from tests.harness.classes import WSGI, each
from tests.harness.needs import needs

APPLICATIONS = {
    **dict.fromkeys((*WSGI, "tornado-wsgi"), "wsgi"),
    "asgi": "asgi",
    "tornado": "tornado()",
    "aiohttp": "aiohttp()",
}
SEPARATE = "x-forwarded-for,x-forwarded-proto,x-forwarded-host,x-forwarded-port"
FIELDS = [
    ("X-Forwarded-For", "6.6.6.6, 203.0.113.9:4711"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Host", "evil.example, shop.example"),
    ("X-Forwarded-Port", "8443"),
    ("Forwarded", "for=6.6.6.6"),
]
ONE = [("Forwarded", 'for=6.6.6.6, for="203.0.113.9:4711";proto=https;host="shop.example:8443"'), *FIELDS[:1]]
CLAIMED = {"client": "203.0.113.9", "scheme": "https", "host": "shop.example:8443"}

pytestmark = pytest.mark.beyond_reference("it has no such setting")


@pytest.fixture(params=each(*APPLICATIONS))
def subject(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def serve(pool: Pool, subject: str, headers: str, trusted: str = "127.0.0.1", **more: Any) -> Server:
    options = {"trusted_proxy_headers": headers, "forwarded_allow_ips": trusted, **more}
    alias = subject.partition("-")[0]
    app = f"told:{APPLICATIONS[subject]}"
    return pool.get(app, worker_class=alias, chdir=APPS, access_logfile="-", access_logformat="from=%(h)s", **options)


def told(server: Server, *fields: tuple[str, str]) -> dict[str, Any]:
    """What the application is told; the server only where it is told that."""
    got = server.get("/", *fields).json()
    server_ = got.pop("server")
    assert isinstance(got, dict)
    return got if server_ is None else {**got, "server": server_}


def with_server(subject: str, expected: dict[str, Any], name: str, port: int) -> dict[str, Any]:
    return expected if subject in ("tornado", "aiohttp") else {**expected, "server": [name, port]}


def test_separate_fields_are_applied(pool: Pool, subject: str) -> None:
    server = serve(pool, subject, SEPARATE)
    expected = with_server(subject, {**CLAIMED, "fields": SEPARATE_NAMES}, "shop.example", 8443)
    assert told(server, *FIELDS) == expected
    server.out.wait(r"^from=203\.0\.113\.9$")
    plain = told(server, ("Host", "inner"))
    assert (plain["client"], plain["scheme"], plain["fields"]) == ("127.0.0.1", "http", [])


SEPARATE_NAMES = sorted(SEPARATE.split(","))


def test_a_connection_brings_requests_of_several_clients(pool: Pool, subject: str) -> None:
    server = serve(pool, subject, SEPARATE)
    with server.connect() as wire:
        for last in ("1", "2"):
            assert wire.get("/", ("X-Forwarded-For", f"198.51.100.{last}")).json()["client"] == f"198.51.100.{last}"
        got = wire.get("/").json()
        assert (got["client"], got["scheme"]) == ("127.0.0.1", "http")


def test_what_strangers_say_is_taken_out(pool: Pool, subject: str) -> None:
    server = serve(pool, subject, SEPARATE, trusted="192.0.2.1")
    got = told(server, *FIELDS)
    assert (got["client"], got["scheme"], got["fields"]) == ("127.0.0.1", "http", [])
    assert "example" not in got["host"]
    server.log.wait(r"\[WARNING\] Removed forwarded headers from peers .*: requests: 1, the last from ip=127\.0\.0\.1$")
    told(server, *FIELDS)
    assert len(server.log.matching("Removed forwarded headers from peers")) == 1, "once a minute"


def test_the_field_of_rfc_7239_is_applied(pool: Pool) -> None:
    for subject in ("sync", "asgi"):
        server = serve(pool, subject, "forwarded")
        got = told(server, *ONE)
        assert got == {**CLAIMED, "fields": ["forwarded"], "server": ["shop.example", 8443]}
        reply = server.get("/", ("Forwarded", "for=1.2.3.4; proto=https"))
        assert (reply.status, b"Invalid forwarded header" in reply.body) == (400, True)


def test_bodies_and_pipelined_requests_stay_what_they_are_behind_another_host(pool: Pool) -> None:
    """The new Host stands between the head and the body in the server's buffer."""
    server = serve(pool, "sync", SEPARATE)
    fields = "".join(f"{name}: {value}\r\n" for name, value in FIELDS)
    one = f"POST / HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: 5\r\n\r\nHello".encode()
    chunked = (
        f"POST / HTTP/1.1\r\nHost: a\r\n{fields}Transfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n0\r\n\r\n".encode()
    )
    with server.connect() as wire:
        wire.send(one + chunked + one)
        for _ in range(3):
            assert wire.reply().json()["host"] == "shop.example:8443"
        wire.send(one[:-3])
        wire.send(one[-3:])
        assert wire.reply().json()["client"] == "203.0.113.9"


def test_more_hops_and_what_is_left_to_the_application(pool: Pool) -> None:
    server = serve(pool, "sync", "x-forwarded-for", trusted_proxy_count=2, no_clear_untrusted_proxy_headers=True)
    got = told(server, *FIELDS)
    assert (got["client"], got["scheme"], len(got["fields"])) == ("6.6.6.6", "http", 5)


def test_proxy_headers_of_websockets(pool: Pool) -> None:
    needs("websockets")
    from websockets.sync.client import connect

    server = serve(pool, "asgi", SEPARATE)
    with connect(f"ws://127.0.0.1:{server.port}/", proxy=None, additional_headers=FIELDS) as socket:
        got = json.loads(socket.recv(timeout=30))
    assert got == {**CLAIMED, "scheme": "wss", "server": ["shop.example", 8443], "fields": SEPARATE_NAMES}
