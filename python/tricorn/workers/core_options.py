"""Options of the native core: what follows from the settings and from facts of the worker's class."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tricorn._core import check_upload_dir, upload_dir_in_memory
from tricorn.config.config import Config
from tricorn.config.registry import SETTINGS
from tricorn.config.static_files import mapping, root
from tricorn.config.validators import milliseconds
from tricorn.log import style
from tricorn.workers import pools

if TYPE_CHECKING:
    from tricorn.workers.contract import Contract

SHARED_MEMORY = "/dev/shm"

MEASURED = -1
"""The core's word for a limit that follows the latency."""


def core_options(config: Config, worker: Contract | type[Contract], *, siblings: bool) -> dict[str, object]:
    """Returns the core's options that follow from the settings and from facts of the worker's class."""
    return {setting.name: config.value(setting.name) for setting in SETTINGS if setting.core} | {
        "threads": worker.at_once(config),
        "hub": worker.hub,
        "streaming": worker.streaming or not config.request_buffering,
        "websockets_over_http2": worker.websockets_over_http2,
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
        "static_map": static_map(config),
        "x_sendfile": x_sendfile(config),
        "standing_fields": [field for field in config.headers if field[0].lower() != "server"],
    }


def static_map(config: Config) -> list[tuple[str, str, str, str, bool]]:
    """Returns prefix, directory, Cache-Control, index, and whether the application has what is missing, of each."""
    mappings = [(found, ", ".join(found.directives)) for found in map(mapping, config.static_map)]
    return [
        (
            found.prefix,
            os.path.join(config.chdir or "", found.directory),
            directives or config.static_cache_control,
            config.static_index,
            found.falls_through,
        )
        for found, directives in mappings
    ]


def x_sendfile(config: Config) -> list[tuple[str | None, str]]:
    """Returns the prefix of X-Accel-Redirect, or None for X-Sendfile, and the directory of each."""
    roots = [root(text) for text in config.x_sendfile]
    return [(prefix, os.path.normpath(os.path.join(config.chdir or "", directory))) for prefix, directory in roots]


def buffers_responses(config: Config, worker: Contract | type[Contract]) -> bool:
    """Whether what slow clients do not take goes to disk: a wait for them holds a thread, or the operator wants it."""
    asked = config.response_buffering
    return not worker.yields if asked == "auto" else asked and not worker.streaming


def header_map(config: Config, worker: Contract | type[Contract]) -> str:
    """Returns the policy for header names with an underscore. Without an environ only the operator can drop them."""
    return "dangerous" if config.is_default("header_map") and not worker.merges_names else config.header_map


def _lower(fields: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((name.lower(), value) for name, value in fields)


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
            f"Cannot create temporary files for request bodies in {', '.join(upload_candidates(config))}. Bodies stay "
            f"in memory, up to body_buffer_total = {config.body_buffer_total} bytes; more are rejected. Set "
            "tmp_upload_dir to a writable directory."
        )
    if upload_dir_in_memory(found) is None:
        return None
    return (
        f"Request bodies larger than body_buffer_size go to {found}, which is in memory (tmpfs): up to "
        f"body_disk_total = {config.body_disk_total} bytes. Set tmp_upload_dir to a directory on disk."
    )


def _can_be_written(path: str) -> bool:
    try:
        check_upload_dir(path)
    except (OSError, ValueError):
        return False
    return True
