"""Self-signed certificates, for development and for measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from tricorn._core import self_signed
from tricorn.errors import ConfigError

Key = Literal["ecdsa", "rsa"]

HERE = ("localhost", "127.0.0.1", "::1")


class SelfSigned(NamedTuple):
    """A certificate and its private key, both PEM."""

    certificate: str
    key: str


def make(names: Sequence[str], days: int, key: Key = "ecdsa") -> SelfSigned:
    """Makes a certificate for these names and addresses. Raises ConfigError for a name that none can have."""
    try:
        return SelfSigned(*self_signed(list(names), days, key))
    except ValueError as error:
        raise ConfigError(f"Cannot create a certificate for {', '.join(names)}: {error}.") from None
