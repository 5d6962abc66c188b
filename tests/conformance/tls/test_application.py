"""What applications are told of TLS, and that all else is as in the clear."""

from __future__ import annotations

import base64
import ssl
from typing import Any

import pytest

from tests.conformance.tls.world import INTERFACES, NAMES, World, serve
from tests.conftest import Pool
from tests.harness import Server, with_each
from tests.harness.classes import EVERY, SERVERS_OF_CLASSES, WSGI, each
from tests.harness.proxy_protocol import LINE
from tests.harness.server import free_port
from tests.harness.tls import SecureWire, client
from tests.harness.wire import Wire, request

pytestmark = pytest.mark.beyond_reference("it tells applications nothing of TLS")

CLASSES = pytest.mark.parametrize("alias", each(*EVERY, *SERVERS_OF_CLASSES))


def ask(server: Server, context: ssl.SSLContext, *fields: tuple[str, str], name: str = "localhost") -> Any:
    with SecureWire(server.address, context, name=name) as wire:
        return wire.get("/", *fields).json()


@CLASSES
@with_each("version", ("1.2", "1.3"))
def test_the_scheme_is_https(alias: str, version: str, pool: Pool, world: World) -> None:
    server = serve(pool, alias, **world.settings())
    assert ask(server, client(world.authority, version))["scheme"] == "https"


@pytest.mark.parametrize("alias", each(*WSGI))
@with_each("version", ("1.2", "1.3"))
def test_wsgi_finds_what_was_agreed_on(alias: str, version: str, pool: Pool, world: World) -> None:
    server = serve(pool, alias, **world.settings())
    facts = ask(server, client(world.authority, version), name=NAMES["rsa"])["facts"]
    assert (facts["HTTPS"], facts["SSL_PROTOCOL"], facts["SSL_TLS_SNI"]) == ("on", f"TLSv{version}", NAMES["rsa"])
    assert facts["SSL_CLIENT_VERIFY"] == "NONE"
    assert facts["SSL_CIPHER"]
    assert "SSL_CLIENT_CERT" not in facts


@pytest.mark.parametrize("alias", each(*WSGI))
@with_each("version", ("1.2", "1.3"))
def test_wsgi_finds_who_the_client_is(alias: str, version: str, pool: Pool, world: World) -> None:
    server = serve(pool, alias, **world.mutual())
    facts = ask(server, client(world.authority, version, identity=world.client))["facts"]
    assert facts["SSL_CLIENT_VERIFY"] == "SUCCESS"
    shown, known = (
        ssl.PEM_cert_to_DER_cert(text) for text in (facts["SSL_CLIENT_CERT"], world.client.certificate.read_text())
    )
    assert shown == known
    assert facts["SSL_CLIENT_S_DN_CN"] == "client"
    assert "Tests" in facts["SSL_CLIENT_S_DN"]
    assert "authority" in facts["SSL_CLIENT_I_DN"]
    assert facts["SSL_CLIENT_M_SERIAL"].upper().lstrip("0") == world.client.serial
    assert facts["SSL_CLIENT_SAN_DNS_0"] == "client.test"
    assert facts["SSL_CLIENT_SAN_Email_0"] == "joe@client.test"


@pytest.mark.parametrize("alias", each(*SERVERS_OF_CLASSES))
@with_each("version", ("1.2", "1.3"))
def test_tornado_and_aiohttp_find_it_where_they_look(alias: str, version: str, pool: Pool, world: World) -> None:
    server = serve(pool, alias, **world.mutual())
    facts = ask(server, client(world.authority, version, identity=world.client))["facts"]
    assert [["commonName", "client"]] in facts["peercert"]["subject"]
    plain = serve(pool, alias, **world.settings())
    assert ask(plain, client(world.authority, version))["facts"]["peercert"] is None
    if alias == "aiohttp":
        assert facts["cipher"][1] == f"TLSv{version}"


@with_each("version", ("1.2", "1.3"))
def test_asgi_has_the_extension(version: str, pool: Pool, world: World) -> None:
    """asgiref's specification of it, 0.2: all six keys."""
    server = serve(pool, "asgi", **world.mutual())
    facts = ask(server, client(world.authority, version, identity=world.client))["facts"]
    assert set(facts) >= {
        "server_cert", "client_cert_chain", "client_cert_name", "client_cert_error", "tls_version", "cipher_suite",
    }  # fmt: skip
    assert facts["tls_version"] == {"1.2": 0x0303, "1.3": 0x0304}[version]
    assert isinstance(facts["cipher_suite"], int)
    assert ssl.PEM_cert_to_DER_cert(facts["client_cert_chain"][0]) == ssl.PEM_cert_to_DER_cert(
        world.client.certificate.read_text()
    )
    assert "client" in facts["client_cert_name"]
    assert facts["client_cert_error"] is None
    plain = serve(pool, "asgi", **world.settings())
    assert ask(plain, client(world.authority, version))["facts"]["client_cert_chain"] == []


@CLASSES
@with_each("version", ("1.2", "1.3"))
def test_a_resumed_session_is_told_of_as_the_one_before(alias: str, version: str, pool: Pool, world: World) -> None:
    """The certificates of both are known, though none was shown."""
    server = serve(pool, alias, **world.mutual())
    context = client(world.authority, version, identity=world.client)
    told = []
    session: ssl.SSLSession | None = None
    for _ in range(3):
        with SecureWire(server.address, context, name=NAMES["rsa"], session=session) as wire:
            told.append(wire.get("/").json()["facts"])
            assert wire.secure.session_reused is (session is not None)
            session = wire.secure.session
    kind = told[0].pop("SSL_SESSION_RESUMED", None)
    assert kind in (None, "Initial")
    for facts in told[1:]:
        assert facts.pop("SSL_SESSION_RESUMED", None) == (kind and "Resumed")
        assert facts == told[0]
    if alias in WSGI:
        assert _der(told[0]["SSL_SERVER_CERT"]) == _der(world.rsa.certificate.read_text())
    if alias == "asgi":
        assert _der(told[0]["server_cert"]) == _der(world.rsa.certificate.read_text())


def _der(pem: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem)


def test_a_websocket_is_wss(pool: Pool, world: World) -> None:
    server = serve(pool, "asgi", **world.settings())
    fields = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", base64.b64encode(b"0" * 16).decode()),
    ]
    with SecureWire(server.address, client(world.authority)) as wire:
        assert wire.send(request("GET", "/", fields)).interim().status == 101
        while b'"wss"' not in wire.unread:
            wire._more("a message")


@pytest.mark.parametrize("alias", each(*INTERFACES))
def test_an_address_in_the_clear_beside_it(alias: str, pool: Pool, world: World) -> None:
    """What is spoken is a matter of the listener."""
    port = free_port()
    server = serve(pool, alias, **world.settings(), extra=("-b", f"http://127.0.0.1:{port}"))
    with Wire(("127.0.0.1", port)) as wire:
        told = wire.get("/").json()
    assert told["scheme"] == "http"
    assert ask(server, client(world.authority))["scheme"] == "https"


@CLASSES
def test_a_connection_is_kept_and_bodies_pass_both_ways(alias: str, pool: Pool, world: World) -> None:
    server = serve(pool, alias, "gallery:application", **world.settings())
    body = bytes(range(256)) * 2048
    with SecureWire(server.address, client(world.authority)) as wire:
        assert wire.get("/hello").text == "Hello\n"
        for _ in range(2):
            assert wire.ask("POST", "/body", (), body).json()["length"] == len(body)
            assert len(wire.get(f"/blob?size={len(body)}").body) == len(body)
        wire.send(request("GET", "/hello") * 3)
        assert [wire.reply().status for _ in range(3)] == [200, 200, 200]


def test_what_a_balancer_announces_comes_before_tls(pool: Pool, world: World) -> None:
    server = serve(pool, "gthread", **world.settings(), proxy_protocol="v1")
    with SecureWire(server.address, client(world.authority), first=LINE) as wire:
        assert wire.get("/").json()["scheme"] == "https"
    assert ask(server, client(world.authority))["scheme"] == "https"


class TestNames:
    @with_each(
        ("name", "shown"),
        [("ecdsa.test", "ecdsa"), ("rsa.test", "rsa"), ("a.wild.test", "ecdsa"), ("localhost", "ecdsa")],
    )
    def test_the_name_chooses_the_certificate(self, name: str, shown: str, pool: Pool, world: World) -> None:
        server = serve(pool, "gthread", **world.settings())
        with SecureWire(server.address, client(world.authority), name=name) as wire:
            assert wire.serial == getattr(world, shown).serial

    def test_an_unknown_name_gets_the_first_certificate_or_an_alert(self, pool: Pool, world: World) -> None:
        context = client(world.authority)
        context.check_hostname = False
        server = serve(pool, "gthread", **world.settings())
        with SecureWire(server.address, context, name="unknown.test") as wire:
            assert wire.serial == world.ecdsa.serial
        strict = serve(pool, "gthread", **world.settings(tls_require_sni=True))
        with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
            SecureWire(strict.address, context, name="unknown.test")
        SecureWire(strict.address, context, name="rsa.test").close()


def test_alpn_in_the_environ(pool: Pool, world: World) -> None:
    server = serve(pool, "gthread", **world.settings())
    with SecureWire(server.address, client(world.authority, alpn=("h2", "http/1.1"))) as wire:
        assert wire.secure.selected_alpn_protocol() == "http/1.1"
    with pytest.raises(ssl.SSLError, match=r"(?i)no.application.protocol"):
        SecureWire(server.address, client(world.authority, alpn=("h2",)))
