"""Versions and suites that are not spoken."""

from __future__ import annotations

import ssl

import pytest

from tests.conformance.tls.world import World, serve
from tests.conftest import Pool
from tests.harness.tls import SecureWire, client

pytestmark = pytest.mark.beyond_reference("it has settings of OpenSSL's")


def test_the_lowest_version_may_be_1_3(pool: Pool, world: World) -> None:
    server = serve(pool, "gthread", **world.settings(tls_min_version="1.3"))
    with SecureWire(server.address, client(world.authority, "1.3")) as wire:
        assert wire.get("/").status == 200
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
        SecureWire(server.address, client(world.authority, "1.2"))


def test_suites_are_those_of_ciphers(pool: Pool, world: World) -> None:
    server = serve(pool, "gthread", **world.settings(ciphers="ECDHE-ECDSA-AES256-GCM-SHA384"))
    with SecureWire(server.address, client(world.authority, "1.2")) as wire:
        assert wire.secure.cipher() == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2", 256)
    other = client(world.authority, "1.2")
    other.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError, match=r"(?i)handshake.failure"):
        SecureWire(server.address, other)


def test_old_versions_and_old_suites_get_an_alert(pool: Pool, world: World) -> None:
    server = serve(pool, "gthread", **world.settings())
    old = client(world.authority, "1.2")
    old.set_ciphers("AES128-GCM-SHA256:@SECLEVEL=0")  # the server's key seals: no forward secrecy
    with pytest.raises(ssl.SSLError, match=r"(?i)handshake.failure"):
        SecureWire(server.address, old)
    with SecureWire(server.address, client(world.authority)) as wire:
        assert wire.get("/").status == 200
