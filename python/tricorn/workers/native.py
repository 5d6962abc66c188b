"""The door to the native core: the only place besides the gateway that imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn import log as logs
from tricorn._core import (
    AsgiGateway,
    CallGateway,
    Core,
    GreenServer,
    LoopServer,
    TransportGateway,
    WsgiGateway,
    check_access_log_format,
    check_upload_dir,
    scoreboard_bytes,
)
from tricorn.config.config import Config
from tricorn.errors import ConfigError
from tricorn.gateway import observe, wsgi
from tricorn.workers import GREEN, LOOPS

if TYPE_CHECKING:
    from tricorn.workers.base import Worker

__all__ = [
    "AsgiGateway",
    "CallGateway",
    "Core",
    "GreenServer",
    "LoopServer",
    "TransportGateway",
    "WsgiGateway",
    "check",
    "entries",
    "make_core",
    "make_gateway",
    "scoreboard_bytes",
]

MEASURED = -1
"""The core's word for a limit that follows the latency."""


def check(config: Config) -> None:
    """What only the core can tell about settings, asked before any worker exists. Raises ConfigError."""
    if logs.may_be_native(config):
        try:
            check_access_log_format(config.access_log_format)
        except ValueError as error:
            raise ConfigError(f"Invalid value for access_log_format: {error}") from None
    if config.tmp_upload_dir is not None:
        try:
            check_upload_dir(config.tmp_upload_dir)
        except (OSError, ValueError) as error:
            raise ConfigError(f"Invalid value for tmp_upload_dir: {error}.") from None


def make_core(worker: Worker) -> Core:
    """The core of this process. Only after the fork: it has a thread, and threads do not survive forks."""
    config, place, assignment = worker.cfg, worker.place, worker.assignment
    options = core_options(config, assignment.worker_class, siblings=assignment.siblings) | {
        "max_requests": worker.max_requests if config.max_requests else 0,
        "access_log": logs.native_access(config, worker.log),
        "messages": place.messages,
        "life": place.life,
        "admin_listeners": list(place.admin_listeners),
        "pages": assignment.pages,
        "group": assignment.group,
        "channel": place.channel,
    }
    try:
        return Core(place.listeners, options, assignment.page)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{error}") from None


def make_gateway(worker: Worker) -> WsgiGateway:
    """How the core calls the worker's application."""
    assignment = worker.assignment
    before, after = observe.callbacks(worker, worker.cfg, worker.log)
    return wsgi.make_gateway(
        worker.wsgi,
        worker.log,
        multithread=entries(worker.cfg, assignment.worker_class) > 1,
        multiprocess=assignment.siblings,
        before=before,
        after=after,
    )


def entries(config: Config, alias: str) -> int:
    """How many requests a worker of this class can run at once."""
    if alias in GREEN or alias in LOOPS:
        return max(config.worker_connections, 1)
    return config.threads if alias == "gthread" else 1


def core_options(config: Config, alias: str, *, siblings: bool) -> dict[str, object]:
    """What settings say of any core, under the core's own names."""
    return {
        "threads": entries(config, alias),
        "hub": alias in GREEN or alias in LOOPS,
        "streaming": alias in LOOPS,
        "siblings": siblings,
        "worker_connections": config.worker_connections,
        "max_connections": config.max_connections,
        "keepalive": config.keepalive,
        "queue_limit": config.queue_limit,
        "queue_timeout": config.queue_timeout,
        "queue_order": config.queue_order,
        "max_concurrency": MEASURED if config.max_concurrency == "auto" else config.max_concurrency,
        "timeout": config.timeout,
        "graceful_timeout": config.graceful_timeout,
        "request_timeout": config.request_timeout,
        "header_timeout": config.header_timeout,
        "body_timeout": config.body_timeout,
        "body_min_rate": config.body_min_rate,
        "write_timeout": config.write_timeout,
        "body_buffer_size": config.body_buffer_size,
        "body_buffer_total": config.body_buffer_total,
        "upload_dir": config.tmp_upload_dir,
        "limit_request_line": config.limit_request_line,
        "limit_request_fields": config.limit_request_fields,
        "limit_request_field_size": config.limit_request_field_size,
        "limit_request_body": config.limit_request_body,
        "permit_obsolete_folding": config.permit_obsolete_folding,
        "strip_header_spaces": config.strip_header_spaces,
        "permit_unconventional_http_method": config.permit_unconventional_http_method,
        "permit_unconventional_http_version": config.permit_unconventional_http_version,
        "casefold_http_method": config.casefold_http_method,
        "header_map": config.header_map,
        "forwarder_headers": list(config.forwarder_headers),
        "forwarded_allow_ips": config.forwarded_allow_ips,
        "secure_scheme_headers": dict(config.secure_scheme_headers),
        "request_id": config.request_id,
        "access_log": config.accesslog,
        "access_log_format": config.access_log_format,
        "log_format": config.log_format,
        "sendfile": config.sendfile,
        "server": "tricorn",
        "health_path": config.health_path,
        "ready_path": config.ready_path,
    }
