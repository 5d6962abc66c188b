"""nginx' module `stream` before the server: it announces clients by PROXY, and passes TLS on, ends or begins it."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.conformance.tls.world import NAMES, World, serve
from tests.conftest import Pool
from tests.harness import with_each
from tests.harness.balancers import Balancer, stream_module
from tests.harness.tls import SecureWire, client
from tests.harness.wire import Wire

pytestmark = pytest.mark.beyond_reference("it knows of no TLS behind the PROXY protocol")

PASSED = """\
server {{
    listen 127.0.0.1:{{port}};
    proxy_pass 127.0.0.1:{server};
    proxy_protocol on;
    {more}
}}
"""
HERE = "ssl_certificate {own.certificate}; ssl_certificate_key {own.key};"
ANEW = "proxy_ssl on; proxy_ssl_verify on; proxy_ssl_trusted_certificate {ca}; proxy_ssl_name {name};"


@with_each("how", ("passed on", "ended", "ended and begun anew", "begun"))
def test_nginx_announces_clients(how: str, pool: Pool, world: World, tmp_path: Path) -> None:
    """The client is told of, and what TLS the server itself has seen."""
    ends, begins = how.startswith("ended"), how.endswith(("anew", "begun"))
    is_seen = begins or how == "passed on"
    options = {"proxy_protocol": "v1", "proxy_protocol_required": True}
    server = serve(pool, "sync", "announced:wsgi", **options, **(world.settings() if is_seen else {}))
    more = HERE.format(own=world.rsa) if ends else ""
    more += ANEW.format(ca=world.authority.certificate, name=NAMES["ecdsa"]) if begins else ""
    text = PASSED.format(server=server.port, more=more)
    if ends:
        text = text.replace("{port};", "{port} ssl;")
    balancer = Balancer("nginx", text, tmp_path, module=stream_module())
    with balancer:
        if how == "begun":
            wire = Wire(("127.0.0.1", balancer.port))
        else:
            wire = SecureWire(("127.0.0.1", balancer.port), client(world.authority), name=NAMES["rsa"])
        with wire:
            own = wire.sock.getsockname()
            told = wire.get("/").json()
            if isinstance(wire, SecureWire):
                assert wire.serial == world.rsa.serial, "nginx' own, or tricorn's"
    assert (told["REMOTE_ADDR"], told["REMOTE_PORT"]) == (own[0], str(own[1]))
    assert (told["PROXY_ADDR"], told["PROXY_PORT"]) == ("127.0.0.1", str(balancer.port))
    assert told["wsgi.url_scheme"] == ("https" if is_seen else "http")
    asked = {"passed on": NAMES["rsa"], "ended": None}.get(how, "")
    assert told.get("SSL_TLS_SNI") == asked, "nginx names no server where proxy_ssl_server_name is off"


def test_a_client_that_is_not_announced_gets_no_handshake(pool: Pool, world: World, tmp_path: Path) -> None:
    """nginx without `proxy_protocol on`, before a server that requires it."""
    options = {"proxy_protocol": "v1", "proxy_protocol_required": True}
    server = serve(pool, "sync", "announced:wsgi", **options, **world.settings())
    text = PASSED.format(server=server.port, more="").replace("proxy_protocol on;", "")
    refused = pytest.raises((ssl.SSLError, ConnectionError))
    with Balancer("nginx", text, tmp_path, module=stream_module()) as balancer, refused:
        SecureWire(("127.0.0.1", balancer.port), client(world.authority))
