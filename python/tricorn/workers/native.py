"""The door to the native core: the only place besides the gateway that imports it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
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
    check_access_log_format,
    check_tls,
    check_upload_dir,
    enlarge_signal_stack,
    publish_tls,
    scoreboard_bytes,
    suite_names,
    tls_page_bytes,
    trim_heap,
    upload_dir_in_memory,
)
from tricorn.config.config import Config
from tricorn.config.registry import SETTINGS
from tricorn.config.validators import milliseconds
from tricorn.errors import ConfigError
from tricorn.gateway import agents, observe, wsgi
from tricorn.log import style
from tricorn.version import __version__
from tricorn.workers import pools

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
    "upload_warning",
]

SHARED_MEMORY = "/dev/shm"

MEASURED = -1
"""The core's word for a limit that follows the latency."""


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


def upload_candidates(config: Config) -> list[str]:
    """Returns the directories to try, in this order; only one if `tmp_upload_dir` names it."""
    if config.tmp_upload_dir is not None:
        return [config.tmp_upload_dir]
    system = os.environ.get("TMPDIR") or "/tmp"
    return [path for path in (system, config.worker_tmp_dir, SHARED_MEMORY) if path]


def upload_directory(config: Config) -> str | None:
    """Returns the first in which this user can create files; None if there is none (a read-only file system)."""
    return next(filter(_can_be_written, upload_candidates(config)), None)


def upload_options(config: Config) -> dict[str, object]:
    """Returns the core's options. Without a directory, bodies stay in memory up to `body_buffer_total`."""
    found = upload_directory(config)
    size = config.body_buffer_size if found is not None else max(config.body_buffer_size, config.body_buffer_total)
    return {"upload_dir": found, "body_buffer_size": size}


def upload_warning(config: Config, kind: type[Contract]) -> str | None:
    """Returns a warning if the directory for large bodies is in memory, or if there is none; else None."""
    if kind.streaming or not config.request_buffering:
        return None
    found = upload_directory(config)
    if found is None:
        return (
            f"Request bodies beyond body_buffer_size have no place: no file can be made in "
            f"{', '.join(upload_candidates(config))}. They are kept in memory up to body_buffer_total = "
            f"{config.body_buffer_total} bytes, and refused beyond it. Set tmp_upload_dir to a directory that this "
            "user may write to."
        )
    if upload_dir_in_memory(found) is None:
        return None
    return (
        f"Request bodies beyond body_buffer_size are kept in {found}, which is memory (tmpfs): up to "
        f"body_disk_total = {config.body_disk_total} bytes of it. Set tmp_upload_dir to a directory on a disk."
    )


def _can_be_written(path: str) -> bool:
    try:
        check_upload_dir(path)
    except (OSError, ValueError):
        return False
    return True


def make_core(worker: Contract) -> Core:
    """The core of this process. Only after the fork: it has a thread, and threads do not survive forks."""
    config, fds, spec = worker.cfg, worker.fds, worker.spec
    options = core_options(config, worker, siblings=spec.siblings) | {
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
        "doors": [door(each.door) for each in spec.sockets],
        "tls_page": spec.tls_page,
        "app_metrics": spec.app_metrics.path if spec.app_metrics and config.metrics_app != "off" else None,
    }
    try:
        return Core(fds.listeners, options, spec.page)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{error}") from None


def door(found: Door | None) -> tuple[bool, str | None, bool | None]:
    """Converts a listener's endpoint to the core's form."""
    if found is None:
        return False, None, None
    return bool(found.tls), found.proxy_protocol, found.proxy_protocol_required


def make_gateway(worker: Contract) -> WsgiGateway:
    """How the core calls the worker's application."""
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


def buffers_responses(config: Config, worker: Contract | type[Contract]) -> bool:
    """Whether what slow clients do not take goes to disk: a wait for them holds a thread, or the operator wants it."""
    asked = config.response_buffering
    return not worker.yields if asked == "auto" else asked and not worker.streaming


def header_map(config: Config, worker: Contract | type[Contract]) -> str:
    """Returns the policy for header names with an underscore. Without an environ only the operator can drop them."""
    return "dangerous" if config.is_default("header_map") and not worker.merges_names else config.header_map


def _lower(fields: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((name.lower(), value) for name, value in fields)


def core_options(config: Config, worker: Contract | type[Contract], *, siblings: bool) -> dict[str, object]:
    """Returns the core's options that follow from the settings and from facts of the worker's class."""
    return {setting.name: config.value(setting.name) for setting in SETTINGS if setting.core} | {
        "threads": worker.at_once(config),
        "hub": worker.hub,
        "streaming": worker.streaming or not config.request_buffering,
        "siblings": siblings,
        "closes_idle": config.reload,
        "header_map": header_map(config, worker),
        "max_concurrency": MEASURED if config.max_concurrency == "auto" else config.max_concurrency,
        "response_buffering": buffers_responses(config, worker),
        **upload_options(config),
        "sse_retry": milliseconds(config.sse_retry),
        "doctor_threshold": config.doctor_threshold if config.doctor != "off" else 0.0,
        "doctor_slow_request": config.doctor_slow_request if config.doctor != "off" else 0.0,
        "development": config.reload or style.is_on_terminal(config),
        "wait_sites": pools.sites(),
        "profile_after": config.profile_after if config.doctor != "off" else 0.0,
        "forwarder_headers": list(config.forwarder_headers),
        "secure_scheme_headers": {} if config.trusted_proxy_headers else dict(config.secure_scheme_headers),
        "access_log": config.accesslog,
        "access_log_format": style.access_format(config),
        "access_log_painted": style.is_painted(config),
        "log_format": "json" if config.log_format == style.JSON else "text",
        "server": dict(_lower(config.headers)).get("server", config.server_header),
        "date": config.date_header,
        "standing_fields": [field for field in config.headers if field[0].lower() != "server"],
    }
