"""The door to the native core: the only place besides the gateway that imports it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tricorn import log as logs
from tricorn._core import (
    AsgiGateway,
    CallGateway,
    CallSoon,
    Core,
    GreenServer,
    LoopClock,
    LoopServer,
    SignalHandler,
    TransportGateway,
    WsgiGateway,
    adopt_orphans,
    check_access_log_format,
    check_tls,
    check_upload_dir,
    enlarge_signal_stack,
    publish_tls,
    scoreboard_bytes,
    suite_names,
    tls_page_bytes,
    trim_heap,
)
from tricorn.config.config import Config
from tricorn.errors import ConfigError
from tricorn.gateway import agents, observe, wsgi
from tricorn.version import __version__
from tricorn.workers import core_options

if TYPE_CHECKING:
    from tricorn.config.doors import Door
    from tricorn.workers.contract import Contract

__all__ = [
    "AsgiGateway",
    "CallGateway",
    "CallSoon",
    "Core",
    "GreenServer",
    "LoopClock",
    "LoopServer",
    "SignalHandler",
    "TransportGateway",
    "WsgiGateway",
    "adopt_orphans",
    "check",
    "check_tls",
    "door",
    "enlarge_signal_stack",
    "make_core",
    "make_gateway",
    "make_wsgi_gateway",
    "publish_tls",
    "scoreboard_bytes",
    "suite_names",
    "tls_page_bytes",
    "trim_heap",
    "unknown_atoms",
]


def check(config: Config) -> None:
    """Validates settings that only the core can judge, before any worker exists. Raises ConfigError."""
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


def unknown_atoms(config: Config) -> str | None:
    """A warning, if the format of the access log has atoms that do not exist."""
    complaint = check_access_log_format(config.access_log_format) if logs.may_be_native(config) else None
    return None if complaint is None else f"access_log_format (from {config.origin('access_log_format')}): {complaint}."


def make_core(worker: Contract) -> Core:
    """The core of this process. Only after the fork: it has a thread, and threads do not survive forks."""
    config, fds, spec = worker.cfg, worker.fds, worker.spec
    options = core_options.core_options(config, worker, siblings=spec.siblings) | {
        "max_requests": worker.max_requests if config.max_requests else 0,
        "access_log": logs.native_access(config, worker.log),
        "syslog": logs.native_syslog(config, worker.log),
        "statsd": logs.native_statsd(config, worker.log),
        "messages": fds.messages,
        "life": fds.life,
        "profile": fds.reports,
        "profile_bell": fds.profile_bell,
        "call_file": worker.call_file,
        "admin_listeners": list(fds.admin_listeners),
        "pages": spec.pages,
        "group": spec.group,
        "ledger": spec.ledger,
        "routes": spec.routes,
        "slot": spec.slot,
        "generation": spec.generation,
        "info": [("version", __version__), ("python", sys.version.partition(" ")[0]), ("class", worker.alias)],
        "channel": fds.channel,
        "sessions": spec.sessions,
        "mailboxes": fds.mailboxes,
        "doors": [door(each.door) for each in spec.sockets],
        "tls_page": spec.tls_page,
        "app_metrics": spec.app_metrics.path if spec.app_metrics and config.metrics_app != "off" else None,
    }
    try:
        return Core(fds.listeners, options, spec.page)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{error}") from None


def door(found: Door | None) -> tuple[bool, str | None, bool | None, str | None]:
    """Converts a listener's endpoint to the core's form."""
    if found is None:
        return False, None, None, None
    return bool(found.tls), found.proxy_protocol, found.proxy_protocol_required, found.protocol or None


def make_gateway(worker: Contract) -> WsgiGateway:
    """Returns the gateway through which the core calls the worker's application."""
    return make_wsgi_gateway(worker, worker.wsgi, worker.at_once(worker.cfg))


def make_wsgi_gateway(worker: Contract, application: Callable[..., Any], at_once: int) -> WsgiGateway:
    """The same for this application, of which up to `at_once` calls run at a time."""
    spec = worker.spec
    before, after = observe.callbacks(worker, worker.cfg, worker.log)
    return wsgi.make_gateway(
        agents.observed_wsgi(application),
        worker.log,
        multithread=at_once > 1,
        multiprocess=spec.siblings,
        worker=spec.slot,
        before=before,
        after=after,
    )
