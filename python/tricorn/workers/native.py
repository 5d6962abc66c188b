"""The door to the native core: the only place besides the gateway that imports it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tricorn._core import SCOREBOARD_BYTES, Core, WsgiGateway, check_access_log_format
from tricorn.config.config import Config
from tricorn.errors import ConfigError

__all__ = ["SCOREBOARD_BYTES", "Core", "WsgiGateway", "check", "make_core"]


def check(config: Config) -> None:
    """What only the core can tell about settings, asked before any worker exists. Raises ConfigError."""
    try:
        check_access_log_format(config.access_log_format)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def make_core(listeners: Sequence[int], config: Config, alias: str, siblings: bool, page: memoryview) -> Core:
    """The core of this process. Only after the fork: it has a thread, and threads do not survive forks."""
    return Core(listeners, core_options(config, alias, siblings), page)


def core_options(config: Config, alias: str, siblings: bool) -> dict[str, object]:
    """What the core wants to know, under its own names."""
    return {
        "threads": config.threads if alias == "gthread" else 1,
        "siblings": siblings,
        "worker_connections": config.worker_connections,
        "max_connections": config.max_connections,
        "keepalive": config.keepalive,
        "header_timeout": config.header_timeout,
        "body_timeout": config.body_timeout,
        "body_min_rate": config.body_min_rate,
        "write_timeout": config.write_timeout,
        "body_buffer_size": config.body_buffer_size,
        "body_buffer_total": config.body_buffer_total,
        "limit_request_line": config.limit_request_line,
        "limit_request_fields": config.limit_request_fields,
        "limit_request_field_size": config.limit_request_field_size,
        "permit_obsolete_folding": config.permit_obsolete_folding,
        "strip_header_spaces": config.strip_header_spaces,
        "permit_unconventional_http_method": config.permit_unconventional_http_method,
        "permit_unconventional_http_version": config.permit_unconventional_http_version,
        "casefold_http_method": config.casefold_http_method,
        "header_map": config.header_map,
        "forwarder_headers": list(config.forwarder_headers),
        "forwarded_allow_ips": config.forwarded_allow_ips,
        "secure_scheme_headers": dict(config.secure_scheme_headers),
        "access_log": config.accesslog,
        "access_log_format": config.access_log_format,
        "sendfile": config.sendfile,
        "server": "tricorn",
        "pid": os.getpid(),
    }
