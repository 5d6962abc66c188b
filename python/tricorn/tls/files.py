"""The files that a plan of TLS names: read, and looked at for changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tricorn.errors import ConfigError
from tricorn.tls.plan import Plan, encrypted, is_encrypted
from tricorn.unpatched import os

OCSP = ".ocsp"
"""Suffix of the file with the stapled OCSP response, beside its certificate."""
TICKET_KEY_SIZES = (48, 80)
"""nginx's: a name of 16 bytes, and keys of AES-128 or AES-256 and of the authentication."""

Look = Mapping[str, tuple[int, int, int, int] | None]
"""Identity of each file by stat(2): device, inode, size and time. None if there is no file."""
Bundle = dict[str, object]
"""Input of the core (`native.check_tls`)."""


def look(plan: Plan) -> Look:
    return {path: _stat(path) for path in _paths(plan)}


def read(plan: Plan) -> Bundle:
    """The files of the plan, and what it says besides; without keys of tickets. Raises ConfigError."""
    certificates = []
    for pair in plan.certificates:
        key = _read(pair.key)
        if is_encrypted(key):
            raise ConfigError(encrypted(pair.key))
        staple = pair.certificate + OCSP
        response = _read(staple) if os.path.exists(staple) else None
        certificates.append((pair.certificate, _read(pair.certificate), key, response))
    authorities = b"\n".join(filter(None, (*map(_read, plan.ca_files), plan.ca_data)))
    return {
        "certificates": certificates,
        "ca": authorities or None,
        "crls": [_read(path) for path in plan.crl_files],
        "client_certificates": plan.asks,
        "min_version": plan.min_version,
        "max_version": plan.max_version,
        "suites": None if plan.suites is None else list(plan.suites),
        "alpn": list(plan.alpn),
        "require_sni": plan.require_sni,
        "ticket_lifetime": math.ceil(plan.ticket_lifetime),
        "key_log": plan.key_log,
    }


def ticket_keys(plan: Plan) -> list[bytes]:
    """Reads the plan's ticket keys, the one that seals first. Raises ConfigError."""
    return list(map(_ticket_key, plan.ticket_files))


def _ticket_key(path: str) -> bytes:
    """All bytes of the file count, whatever another server does with each."""
    from hashlib import sha256  # brings OpenSSL into the process

    text = _read(path)
    if len(text) not in TICKET_KEY_SIZES:
        raise ConfigError(
            f"tls_ticket_keys: {path} has {len(text)} bytes; expected 48 or 80 random bytes. Create them with "
            f"`openssl rand 80 > {path}`."
        )
    return sha256(b"tricorn ticket key\0" + text).digest()


def _paths(plan: Plan) -> Iterator[str]:
    for pair in plan.certificates:
        yield from (pair.certificate, pair.key, pair.certificate + OCSP)
    yield from (*plan.ca_files, *plan.crl_files, *plan.ticket_files)


def _stat(path: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)  # of what a symbolic link leads to: Kubernetes changes the link
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST + 1)[: LARGEST + 1]
    except OSError as error:
        raise ConfigError(f"Cannot read the TLS file {path}: {error.strerror}.") from None


LARGEST = 4 << 20
"""Bytes of a file: more than the page has room for, so that the core says so."""
