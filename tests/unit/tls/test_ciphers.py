"""OpenSSL's cipher lists."""

from __future__ import annotations

import pytest
from tricorn.errors import ConfigError
from tricorn.tls import ciphers, from_settings
from tricorn.tls.ciphers import TLS_1_2, TLS_1_3, suites_of

from tests.unit.tls.test_from_settings import config


def test_a_list_of_ours() -> None:
    text = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305"
    suites, warning = suites_of(text, "--ciphers", "1.2")
    assert suites == (*TLS_1_3, *(TLS_1_2[name] for name in text.split(":")))
    assert warning is None


def test_what_is_not_there_is_told_with_what_remains() -> None:
    suites, warning = suites_of("ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA", "--ciphers", "1.2")
    assert suites == (*TLS_1_3, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
    assert warning is not None
    assert "1 of its 2 TLS 1.2 cipher suites are not supported" in warning
    assert warning.endswith("Offered: ECDHE-RSA-AES128-GCM-SHA256.")


def test_a_list_that_leaves_nothing_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError) as caught:
        suites_of("AES128-SHA", "--ciphers", "1.2")
    assert all(name in str(caught.value) for name in TLS_1_2)
    assert 'tls_min_version = "1.3"' in str(caught.value)
    assert suites_of("AES128-SHA", "--ciphers", "1.3") == (TLS_1_3, None)


def test_what_openssl_does_not_know() -> None:
    with pytest.raises(
        ConfigError, match=r"Invalid value for ciphers: NONSENSE \(from --ciphers\): OpenSSL recognizes"
    ):
        suites_of("NONSENSE", "--ciphers", "1.2")


def test_tls_plan_has_the_ciphers() -> None:
    made, _ = from_settings.plan(config(certfile="/c", ciphers="ECDHE+AESGCM"))
    assert made.suites is not None
    assert set(TLS_1_3) < set(made.suites)
    assert "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256" not in made.suites


def test_the_names_are_those_of_the_core() -> None:
    from tricorn.workers import native

    assert {*ciphers.TLS_1_3, *ciphers.TLS_1_2.values()} == set(native.suite_names())
