"""What applications find in place of Python's SSLSocket."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from tricorn.gateway.tls_session import Session, extra

from tests.harness.certificates import Authority

FACTS: dict[str, Any] = {
    "version": "TLSv1.3",
    "cipher": ("TLS_AES_128_GCM_SHA256", "TLSv1.3", 128),
    "alpn": "http/1.1",
    "server_name": "localhost",
    "peer_certificate": None,
}


@pytest.fixture
def certificate(tmp_path: Path) -> bytes:
    issued = Authority(tmp_path).issue("joe", ("client.test", "joe@client.test"))
    return ssl.PEM_cert_to_DER_cert(issued.certificate.read_text())


def test_tls_session_parameters() -> None:
    session = Session(FACTS)
    assert (session.version(), session.selected_alpn_protocol()) == ("TLSv1.3", "http/1.1")
    assert session.cipher() == extra(FACTS, "cipher") == ("TLS_AES_128_GCM_SHA256", "TLSv1.3", 128)
    assert isinstance(extra(FACTS, "ssl_object"), Session)


def test_a_client_without_a_certificate() -> None:
    assert Session(FACTS).getpeercert() is None
    assert Session(FACTS).getpeercert(binary_form=True) is None
    assert extra(FACTS, "peercert") is None


def test_a_certificate_is_read_as_python_reads_it(certificate: bytes) -> None:
    facts = {**FACTS, "peer_certificate": certificate}
    found = Session(facts).getpeercert()
    assert isinstance(found, dict)
    assert found == extra(facts, "peercert")
    assert found["subject"] == ((("organizationName", "Tests, Inc."),), (("commonName", "joe"),))
    assert found["subjectAltName"] == (("DNS", "client.test"), ("email", "joe@client.test"))
    assert Session(facts).getpeercert(binary_form=True) == certificate
