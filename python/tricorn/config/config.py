"""The resolved configuration: typed values, each with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tricorn.config.settings import debugging, logging, process, security, slow_clients, socket


@dataclass(frozen=True, slots=True)
class Resolved:
    """A value and the place it came from: `default`, `TRICORN_WORKERS`, `--workers` …"""

    value: object
    origin: str


class Config:
    """`cfg.workers` is the value of the record `process.WORKERS`. Immutable: a reload makes another one."""

    __slots__ = ("_resolved",)

    def __init__(self, resolved: Mapping[str, Resolved]) -> None:
        self._resolved = resolved

    def value(self, name: str) -> object:
        return self._resolved[name].value

    def origin(self, name: str) -> str:
        return self._resolved[name].origin

    bind = socket.BIND
    backlog = socket.BACKLOG

    wsgi_app = process.WSGI_APP
    workers = process.WORKERS
    worker_class = process.WORKER_CLASS
    threads = process.THREADS
    worker_connections = process.WORKER_CONNECTIONS
    timeout = process.TIMEOUT
    graceful_timeout = process.GRACEFUL_TIMEOUT
    keepalive = process.KEEPALIVE
    chdir = process.CHDIR
    pythonpath = process.PYTHONPATH
    raw_env = process.RAW_ENV
    preload_app = process.PRELOAD_APP
    sendfile = process.SENDFILE
    umask = process.UMASK

    header_timeout = slow_clients.HEADER_TIMEOUT
    body_timeout = slow_clients.BODY_TIMEOUT
    body_min_rate = slow_clients.BODY_MIN_RATE
    write_timeout = slow_clients.WRITE_TIMEOUT
    body_buffer_size = slow_clients.BODY_BUFFER_SIZE
    body_buffer_total = slow_clients.BODY_BUFFER_TOTAL
    max_connections = slow_clients.MAX_CONNECTIONS

    limit_request_line = security.LIMIT_REQUEST_LINE
    limit_request_fields = security.LIMIT_REQUEST_FIELDS
    limit_request_field_size = security.LIMIT_REQUEST_FIELD_SIZE
    forwarded_allow_ips = security.FORWARDED_ALLOW_IPS
    secure_scheme_headers = security.SECURE_SCHEME_HEADERS
    forwarder_headers = security.FORWARDER_HEADERS
    header_map = security.HEADER_MAP
    permit_obsolete_folding = security.PERMIT_OBSOLETE_FOLDING
    strip_header_spaces = security.STRIP_HEADER_SPACES
    permit_unconventional_http_method = security.PERMIT_UNCONVENTIONAL_HTTP_METHOD
    permit_unconventional_http_version = security.PERMIT_UNCONVENTIONAL_HTTP_VERSION
    casefold_http_method = security.CASEFOLD_HTTP_METHOD

    accesslog = logging.ACCESSLOG
    access_log_format = logging.ACCESS_LOG_FORMAT
    errorlog = logging.ERRORLOG
    loglevel = logging.LOGLEVEL

    check_config = debugging.CHECK_CONFIG
