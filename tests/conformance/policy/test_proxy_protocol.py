"""`proxy_protocol`: what a balancer announces holds for the whole connection, alike under every class and interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.policy.test_proxy_headers import APPLICATIONS
from tests.conftest import Pool
from tests.harness import APPS, Server, until
from tests.harness.balancers import Balancer
from tests.harness.classes import each
from tests.harness.proxy_protocol import LINE, LOCAL, header, value
from tests.harness.wire import Wire, request

pytestmark = pytest.mark.beyond_reference("its event-loop workers, and its version 2, differ")

GET = request("GET", "/")
TLS = value(0x20, b"\1\0\0\0\0" + value(0x21, b"TLSv1.3") + value(0x23, b"TLS_AES_128_GCM_SHA256"))
MUTUAL = value(0x20, b"\3\0\0\0\0" + value(0x21, b"TLSv1.3") + value(0x22, b"joe") + value(0x28, b"\x30\x82"))


@pytest.fixture(params=each(*APPLICATIONS))
def subject(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def serve(pool: Pool, subject: str, app: str = "", **more: Any) -> Server:
    options = {"proxy_protocol": "auto", **more}
    alias = subject.partition("-")[0]
    app = app or f"told:{APPLICATIONS[subject]}"
    return pool.get(app, worker_class=alias, chdir=APPS, access_logfile="-", access_logformat="from=%(h)s", **options)


def opened(server: Server, *first: bytes) -> Wire:
    """A connection on which these bytes were sent, each in a packet of its own."""
    wire = server.connect()
    for part in first:
        wire.send(part)
        until(wire.is_all_read, "the server has read it")
    return wire


@pytest.mark.parametrize("first", [LINE, header()], ids=["v1", "v2"])
def test_the_connection_is_the_clients(pool: Pool, subject: str, first: bytes) -> None:
    server = serve(pool, subject, forwarded_allow_ips="192.0.2.0/24")
    before = len(server.out.matching(r"^from=203\.0\.113\.9$"))
    with opened(server) as wire:
        wire.send(first + GET + GET)
        for _ in range(2):
            assert wire.reply().json()["client"] == "203.0.113.9"
        # Its forwarded fields count as the client's: not at all.
        assert wire.get("/", ("X-Forwarded-Proto", "https")).json()["scheme"] == "http"
    server.out.wait(r"^from=203\.0\.113\.9$", count=before + 3)


def test_who_may_claim_things_is_the_announced_client(pool: Pool, subject: str) -> None:
    server = serve(pool, subject, forwarded_allow_ips="203.0.113.0/24", trusted_proxy_headers="x-forwarded-proto")
    with opened(server, LINE) as wire:
        assert wire.get("/", ("X-Forwarded-Proto", "https")).json()["scheme"] == "https"
    assert server.get("/", ("X-Forwarded-Proto", "https")).json()["scheme"] == "http", "the balancer is no client"


def test_it_comes_in_pieces_or_not_at_all(pool: Pool, subject: str) -> None:
    server = serve(pool, subject)
    with opened(server, LINE[:3], LINE[3:20], LINE[20:], GET[:5]) as wire:
        assert wire.send(GET[5:]).reply().json()["client"] == "203.0.113.9"
    first = header(source="2001:db8::9", destination="2001:db8::1")
    with opened(server, first[:1], first[1:13], first[13:30], first[30:] + GET[:1]) as wire:
        assert wire.send(GET[1:]).reply().json()["client"] == "2001:db8::9"
    assert server.get("/").json()["client"] == "127.0.0.1", "a connection that is not announced speaks for itself"
    for own in (b"PROXY UNKNOWN\r\n", header(command=LOCAL)):
        with opened(server, own) as wire:
            assert wire.get("/").json()["client"] == "127.0.0.1"


def test_tls_with_the_balancer_is_https(pool: Pool, subject: str) -> None:
    server = serve(pool, subject)
    with opened(server, header(TLS)) as wire:
        assert wire.get("/").json()["scheme"] == "https"
    with opened(server, header(value(0x20, b"\0\0\0\0\0"))) as wire:
        assert wire.get("/").json()["scheme"] == "http"


@pytest.mark.parametrize(
    ("first", "status", "says"),
    [
        (b"PROXY TCP4 203.0.113.9 198.51.100.1 4711\r\n", 400, "Invalid PROXY line: 'PROXY TCP4"),
        (b"PROXY TCP4 " + b"1" * 100, 400, "Invalid PROXY line"),
        (header()[:12] + b"\x11" + header()[13:], 400, "Invalid PROXY header: version 1, expected 2"),
        (header(value(3, b"\0\0\0\0")), 400, "Invalid PROXY header: its checksum is another one"),
        (LINE + LINE, 400, "Invalid HTTP"),
    ],
    ids=["grammar", "no end", "version", "checksum", "a second one"],
)
def test_a_header_that_is_wrong_is_refused(pool: Pool, subject: str, first: bytes, status: int, says: str) -> None:
    server = serve(pool, subject)
    with opened(server) as wire:
        assert wire.send(first + GET).reply().status == status
        wire.closed()
    server.log.wait(f"Invalid request from ip=.*: {says}")


def test_strangers_may_announce_nothing(pool: Pool, subject: str) -> None:
    server = serve(pool, subject, proxy_allow_from="192.0.2.1")
    with opened(server) as wire:
        reply = wire.send(LINE + GET).reply()
        assert (reply.status, b"Request forbidden" in reply.body) == (403, True)
    server.log.wait(r"Invalid request from ip=127\.0\.0\.1: Proxy request from '127\.0\.0\.1' not allowed")
    assert server.get("/").json()["client"] == "127.0.0.1"


def test_where_it_is_required_nothing_else_is_served(pool: Pool) -> None:
    server = serve(pool, "sync", proxy_protocol_required=True)
    assert server.get("/").status == 400
    server.log.wait(r"Invalid PROXY header: there is none \(proxy_protocol_required\)")
    with opened(server, LINE) as wire:
        assert wire.get("/").status == 200


@pytest.mark.parametrize(("mode", "served", "refused"), [("v1", LINE, header()), ("v2", header(), LINE)])
def test_one_version_alone(pool: Pool, mode: str, served: bytes, refused: bytes) -> None:
    server = serve(pool, "sync", proxy_protocol=mode)
    with opened(server, served) as wire:
        assert wire.get("/").json()["client"] == "203.0.113.9"
    with opened(server) as wire:
        assert wire.send(refused + GET).reply().status == 400


def test_balancers_that_only_look_are_no_bad_clients(pool: Pool) -> None:
    server = serve(pool, "gthread", threads=3)  # with a log of its own
    for first in (header(command=LOCAL), LINE, b""):
        with opened(server, first):
            pass
    assert server.get("/").status == 200
    assert not server.log.matching("disconnected before its request|Invalid")


def test_a_connection_that_is_handed_over_stays_the_clients(pool: Pool) -> None:
    """Four connections of one worker, of which each but one has to be answered by another."""
    server = serve(pool, "sync", workers=4, app="announced:wsgi")
    first = header(value(5, b"id-1"), TLS)
    wires = [opened(server, first) for _ in range(12)]
    try:
        for wire in wires:
            wire.send(GET)
        for wire in wires:
            told = wire.reply().json()
            assert (told["REMOTE_ADDR"], told["PROXY_UNIQUE_ID"], told["HTTPS"]) == ("203.0.113.9", "id-1", "on")
    finally:
        for wire in wires:
            wire.close()


class TestFacts:
    def test_proxy_protocol_in_an_environ(self, pool: Pool) -> None:
        server = serve(pool, "sync", app="announced:wsgi")
        with opened(server, LINE) as wire:
            told = wire.get("/").json()
        ends = {"REMOTE_ADDR": "203.0.113.9", "REMOTE_PORT": "4711", "PROXY_PROTOCOL": "TCP4"}
        assert told == {**ends, "PROXY_ADDR": "198.51.100.1", "PROXY_PORT": "443", "wsgi.url_scheme": "http"}
        first = header(value(2, b"shop.example"), value(5, b"\xffid"), MUTUAL)
        with opened(server, first) as wire:
            told = wire.get("/").json()
        assert told["PROXY_UNIQUE_ID"] == "\xffid"
        tls = {"PROTOCOL": "TLSv1.3", "TLS_SNI": "shop.example", "CLIENT_VERIFY": "SUCCESS", "CLIENT_S_DN_CN": "joe"}
        assert {key: told[f"SSL_{key}"] for key in tls} == tls
        assert (told["HTTPS"], told["wsgi.url_scheme"]) == ("on", "https")
        assert "PROXY_PROTOCOL" not in server.get("/").json()

    def test_proxy_protocol_in_a_scope(self, pool: Pool) -> None:
        server = serve(pool, "asgi", app="announced:asgi")
        first = header(value(1, b"h2"), value(2, b"shop.example"), value(0xE1, b"ours"), MUTUAL)
        with opened(server, first) as wire:
            told = wire.get("/").json()
        ends = {"version": 2, "family": "TCP4", "source": ["203.0.113.9", 4711], "destination": ["198.51.100.1", 443]}
        certificate = {"client_verify": "SUCCESS", "client_cn": "joe", "client_cert": "0\x82"}
        assert told == {
            **ends,
            "alpn": "h2",
            "authority": "shop.example",
            "unique_id": None,
            "tls": {"version": "TLSv1.3", "cipher": None, **certificate},
            "custom": {"225": "ours"},
        }
        assert server.get("/").json() is None


@pytest.mark.parametrize("mode", ["tcp", "http"])
@pytest.mark.parametrize("how", ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"])
def test_proxy_protocol_of_haproxy(pool: Pool, tmp_path: Path, how: str, mode: str) -> None:
    server = serve(pool, "sync", app="announced:wsgi", proxy_protocol_required=True)
    line = f"    server one 127.0.0.1:{server.port} {how}"
    with Balancer("haproxy", line, tmp_path, mode=mode) as balancer, balancer.connect() as wire:
        own = wire.sock.getsockname()
        told = wire.get("/").json()
    assert (told["REMOTE_ADDR"], told["REMOTE_PORT"]) == (own[0], str(own[1]))
    assert (told["PROXY_ADDR"], told["PROXY_PORT"]) == ("127.0.0.1", str(balancer.port))
    assert "PROXY_UNIQUE_ID" not in told, "HAProxy sends an empty one where its configuration makes none"
