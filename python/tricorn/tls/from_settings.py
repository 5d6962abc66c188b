"""Makes the TLS plan of the settings, which names files and reads none.

Lowest to highest: the settings, or the context that the hook `ssl_context` makes of them (`from_context`). The arbiter
reads the files of the plan, at the start and when they change (`certificates`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.config import doors
from tricorn.config.settings.tls import Tls
from tricorn.errors import ConfigError
from tricorn.record import replace
from tricorn.tls.plan import ALPN, ASKS, Pair, Plan
from tricorn.unpatched import os

if TYPE_CHECKING:
    from tricorn.config.config import Config

CERTIFICATES = ("certfile", "certificate")
"""The settings of which one makes addresses without a scheme speak TLS."""


def check(config: Config) -> None:
    """Checks which settings go together. Raises ConfigError; reads no file, and calls no hook."""
    if config.keyfile is not None and config.certfile is None:
        raise ConfigError(f"keyfile is set (from {config.origin('keyfile')}) but certfile is not. Set certfile too.")
    if config.has_certificate or has_hook(config):
        return
    for text in config.bind:
        if doors.parse(text).tls:
            raise ConfigError(
                f"{text} (from {config.origin('bind')}) uses TLS, but there is no certificate. Set certfile and "
                "keyfile, or certificate. For development create one with `tricorn dev-cert`."
            )


def serves(config: Config) -> bool:
    """Whether TLS is spoken anywhere."""
    return any(door.tls for door in config.doors)


def has_hook(config: Config) -> bool:
    return config.ssl_context is not Tls.ssl_context.default


def plan(config: Config) -> tuple[Plan, tuple[str, ...]]:
    """Returns the plan, and warnings. Calls the hook. Raises ConfigError."""
    warnings: list[str] = []
    if config.tls_key_log is not None:
        warnings.append(
            f"tls_key_log (from {config.origin('tls_key_log')}): the keys of all connections are written to "
            f"{config.tls_key_log}. Readers of that file can decrypt the traffic."
        )
    made = of_settings(config)
    if has_hook(config):
        from tricorn.tls import from_context

        made, more = from_context.plan(config, made)
        warnings += more
    elif config.ciphers is not None:
        from tricorn.tls import ciphers

        suites, warning = ciphers.suites_of(config.ciphers, config.origin("ciphers"), made.min_version)
        made = replace(made, suites=suites)
        warnings += [warning] if warning else []
    if made.asks != "none" and not (made.ca_files or made.ca_data):
        raise ConfigError(
            f"cert_reqs = {ASKS.index(made.asks)} (from {config.origin('cert_reqs')}) asks clients for certificates, "
            "but ca_certs is not set. Set ca_certs to the certificate of their authority."
        )
    return made, tuple(warnings)


def of_settings(config: Config) -> Plan:
    """Without `ciphers` and the hook."""

    def path(name: str) -> str:
        return os.path.join(config.chdir or "", name)

    first = [(config.certfile, config.keyfile)] if config.certfile is not None else []
    others = [(certificate, key) for certificate, _, key in (pair.partition(":") for pair in config.certificate)]
    return Plan(
        certificates=tuple(Pair(path(certificate), path(key or certificate)) for certificate, key in (*first, *others)),
        ca_files=() if config.ca_certs is None else (path(config.ca_certs),),
        crl_files=tuple(map(path, config.tls_crl_file)),
        asks=ASKS[config.cert_reqs],
        min_version=config.tls_min_version,
        alpn=tuple(ALPN[name] for name in config.http_protocols),
        require_sni=config.tls_require_sni,
        ticket_files=tuple(map(path, config.tls_ticket_keys)),
        ticket_lifetime=config.tls_ticket_lifetime,
        key_log=None if config.tls_key_log is None else path(config.tls_key_log),
    )
