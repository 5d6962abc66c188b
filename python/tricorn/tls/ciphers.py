"""OpenSSL's cipher lists, and which suites of ours they mean. Python's module ssl reads them."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping

from tricorn.errors import ConfigError

TLS_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""OpenSSL's names of these are IANA's."""
TLS_1_2: Mapping[str, str] = {
    "ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "ECDHE-RSA-AES128-GCM-SHA256": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "ECDHE-RSA-CHACHA20-POLY1305": "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
}
"""IANA's names, by OpenSSL's."""


def suites_of(text: str, origin: str, min_version: str) -> tuple[tuple[str, ...], str | None]:
    """The suites that a list means, by IANA's names, and a warning if others are left out. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.set_ciphers(text)
    except ssl.SSLError:
        raise ConfigError(
            f"Invalid value for ciphers: {text} (from {origin}): OpenSSL recognizes no cipher suite in this list "
            f"({ssl.OPENSSL_VERSION}). Choose from: {', '.join(TLS_1_2)}."
        ) from None
    return served(_names(context), f"ciphers = {text} (from {origin})", min_version)


def suites_of_context(context: ssl.SSLContext, origin: str, min_version: str) -> tuple[tuple[str, ...], str | None]:
    """Returns the suites of an SSL context's cipher list."""
    return served(_names(context), origin, min_version)


def is_default(context: ssl.SSLContext) -> bool:
    """Whether it has the list that contexts of servers have at first."""
    return _names(context) == _names(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))


def served(names: Iterable[str], what: str, min_version: str) -> tuple[tuple[str, ...], str | None]:
    """Returns the suites with these OpenSSL names. `what` begins the sentences."""
    asked = [name for name in names if name not in TLS_1_3]
    found = [name for name in asked if name in TLS_1_2]
    if not found and min_version == "1.2":
        raise ConfigError(
            f"{what}: none of its TLS 1.2 cipher suites is supported. Choose from: {', '.join(TLS_1_2)}. "
            'Or set tls_min_version = "1.3".'
        )
    left_out = len(asked) - len(found)
    warning = (
        f"{what}: {left_out} of its {len(asked)} TLS 1.2 cipher suites are not supported (CBC, DHE, static RSA …). "
        f"Offered: {', '.join(found)}."
    )
    return (*TLS_1_3, *(TLS_1_2[name] for name in found)), warning if left_out and min_version == "1.2" else None


def _names(context: ssl.SSLContext) -> list[str]:
    return [cipher["name"] for cipher in context.get_ciphers()]
