"""The resolved configuration: typed values, each with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tricorn.config import addresses, foreign
from tricorn.config.registry import BY_NAME
from tricorn.config.settings import (
    admin,
    application,
    debugging,
    event_loops,
    hooks,
    logging,
    mechanics,
    processes,
    queueing,
    responses,
    security,
    slow_clients,
    socket,
)
from tricorn.config.unavailable import UNAVAILABLE
from tricorn.record import Record

DEFAULT = "default"
"""The origin of a value that nobody has set."""

_REFUSED = {record.name: record.default for record in UNAVAILABLE}
_NAMES = dict.fromkeys((*BY_NAME, *_REFUSED))


class Resolved(Record):
    """A value and the place it came from: `default`, `TRICORN_WORKERS`, `--workers` …"""

    value: object
    origin: str


class Config:
    """`cfg.workers` is the value of the record `processes.WORKERS`. A reload makes another one; only hooks change it.

    Hooks, worker classes and loggers that were written for gunicorn get it as `cfg`; what they expect there and
    we do not use ourselves stands at the end.
    """

    __slots__ = ("_resolved",)

    def __init__(self, resolved: Mapping[str, Resolved]) -> None:
        self._resolved = resolved

    def value(self, name: str) -> object:
        return self._resolved[name].value

    def origin(self, name: str) -> str:
        return self._resolved[name].origin

    def is_default(self, name: str) -> bool:
        """Whether nobody has set it: not a file, not a variable, not a flag."""
        return self._resolved[name].origin == DEFAULT

    def with_default(self, *names: str) -> Config:
        """The same, but with the defaults of these settings."""
        return Config(dict(self._resolved) | {name: Resolved(BY_NAME[name].default, DEFAULT) for name in names})

    config = application.CONFIG
    wsgi_app = application.WSGI_APP
    factory = application.FACTORY
    env_file = application.ENV_FILE
    unavailable = application.UNAVAILABLE

    bind = socket.BIND
    backlog = socket.BACKLOG

    admin_bind = admin.ADMIN_BIND
    health_path = admin.HEALTH_PATH
    ready_path = admin.READY_PATH

    workers = processes.WORKERS
    worker_class = processes.WORKER_CLASS
    threads = processes.THREADS
    worker_connections = processes.WORKER_CONNECTIONS
    green_drivers = processes.GREEN_DRIVERS
    max_requests = processes.MAX_REQUESTS
    max_requests_jitter = processes.MAX_REQUESTS_JITTER
    timeout = processes.TIMEOUT
    graceful_timeout = processes.GRACEFUL_TIMEOUT
    keepalive = processes.KEEPALIVE
    request_timeout = processes.REQUEST_TIMEOUT
    boot_timeout = processes.BOOT_TIMEOUT
    max_worker_memory = processes.MAX_WORKER_MEMORY
    max_worker_lifetime = processes.MAX_WORKER_LIFETIME
    max_worker_lifetime_jitter = processes.MAX_WORKER_LIFETIME_JITTER
    drain_delay = processes.DRAIN_DELAY
    http_parser = processes.HTTP_PARSER

    asgi_loop = event_loops.ASGI_LOOP
    asgi_lifespan = event_loops.ASGI_LIFESPAN
    asgi_disconnect_grace_period = event_loops.ASGI_DISCONNECT_GRACE_PERIOD
    root_path = event_loops.ROOT_PATH
    websocket_max_message_size = event_loops.WEBSOCKET_MAX_MESSAGE_SIZE
    websocket_ping_interval = event_loops.WEBSOCKET_PING_INTERVAL
    websocket_ping_timeout = event_loops.WEBSOCKET_PING_TIMEOUT
    websocket_compression = event_loops.WEBSOCKET_COMPRESSION

    queue_limit = queueing.QUEUE_LIMIT
    queue_timeout = queueing.QUEUE_TIMEOUT
    queue_order = queueing.QUEUE_ORDER
    max_concurrency = queueing.MAX_CONCURRENCY
    handover = queueing.HANDOVER

    preload_app = mechanics.PRELOAD_APP
    sendfile = mechanics.SENDFILE
    reuse_port = mechanics.REUSE_PORT
    chdir = mechanics.CHDIR
    daemon = mechanics.DAEMON
    raw_env = mechanics.RAW_ENV
    pidfile = mechanics.PIDFILE
    worker_tmp_dir = mechanics.WORKER_TMP_DIR
    user = mechanics.USER
    group = mechanics.GROUP
    umask = mechanics.UMASK
    initgroups = mechanics.INITGROUPS
    tmp_upload_dir = mechanics.TMP_UPLOAD_DIR
    pythonpath = mechanics.PYTHONPATH
    control_socket_disable = mechanics.CONTROL_SOCKET_DISABLE
    proc_name = mechanics.PROC_NAME
    default_proc_name = mechanics.DEFAULT_PROC_NAME
    title_prefix = mechanics.TITLE_PREFIX

    header_timeout = slow_clients.HEADER_TIMEOUT
    head_buffer_total = slow_clients.HEAD_BUFFER_TOTAL
    body_timeout = slow_clients.BODY_TIMEOUT
    body_min_rate = slow_clients.BODY_MIN_RATE
    write_timeout = slow_clients.WRITE_TIMEOUT
    body_buffer_size = slow_clients.BODY_BUFFER_SIZE
    body_buffer_total = slow_clients.BODY_BUFFER_TOTAL
    body_disk_total = slow_clients.BODY_DISK_TOTAL
    request_buffering = slow_clients.REQUEST_BUFFERING
    response_buffering = slow_clients.RESPONSE_BUFFERING
    response_buffer_size = slow_clients.RESPONSE_BUFFER_SIZE
    response_buffer_total = slow_clients.RESPONSE_BUFFER_TOTAL
    response_disk_size = slow_clients.RESPONSE_DISK_SIZE
    response_disk_total = slow_clients.RESPONSE_DISK_TOTAL
    max_connections = slow_clients.MAX_CONNECTIONS

    limit_request_line = security.LIMIT_REQUEST_LINE
    limit_request_fields = security.LIMIT_REQUEST_FIELDS
    limit_request_field_size = security.LIMIT_REQUEST_FIELD_SIZE
    limit_request_body = security.LIMIT_REQUEST_BODY
    forwarded_allow_ips = security.FORWARDED_ALLOW_IPS
    secure_scheme_headers = security.SECURE_SCHEME_HEADERS
    forwarder_headers = security.FORWARDER_HEADERS
    header_map = security.HEADER_MAP
    permit_obsolete_folding = security.PERMIT_OBSOLETE_FOLDING
    strip_header_spaces = security.STRIP_HEADER_SPACES
    permit_unconventional_http_method = security.PERMIT_UNCONVENTIONAL_HTTP_METHOD
    permit_unconventional_http_version = security.PERMIT_UNCONVENTIONAL_HTTP_VERSION
    casefold_http_method = security.CASEFOLD_HTTP_METHOD

    server_header = responses.SERVER_HEADER
    date_header = responses.DATE_HEADER
    headers = responses.HEADERS

    accesslog = logging.ACCESSLOG
    disable_redirect_access_to_syslog = logging.DISABLE_REDIRECT_ACCESS_TO_SYSLOG
    access_log_format = logging.ACCESS_LOG_FORMAT
    errorlog = logging.ERRORLOG
    loglevel = logging.LOGLEVEL
    log_streams = logging.LOG_STREAMS
    log_format = logging.LOG_FORMAT
    request_id = logging.REQUEST_ID
    capture_output = logging.CAPTURE_OUTPUT
    logger_class = logging.LOGGER_CLASS
    logconfig = logging.LOGCONFIG
    logconfig_dict = logging.LOGCONFIG_DICT
    logconfig_json = logging.LOGCONFIG_JSON
    enable_stdio_inheritance = logging.ENABLE_STDIO_INHERITANCE

    reload = debugging.RELOAD
    reload_engine = debugging.RELOAD_ENGINE
    reload_extra_files = debugging.RELOAD_EXTRA_FILES
    reload_dirs = debugging.RELOAD_DIRS
    reload_includes = debugging.RELOAD_INCLUDES
    reload_excludes = debugging.RELOAD_EXCLUDES
    spew = debugging.SPEW
    check_config = debugging.CHECK_CONFIG
    print_config = debugging.PRINT_CONFIG

    on_starting = hooks.ON_STARTING
    on_reload = hooks.ON_RELOAD
    when_ready = hooks.WHEN_READY
    pre_fork = hooks.PRE_FORK
    post_fork = hooks.POST_FORK
    post_worker_init = hooks.POST_WORKER_INIT
    worker_int = hooks.WORKER_INT
    worker_abort = hooks.WORKER_ABORT
    pre_exec = hooks.PRE_EXEC
    pre_request = hooks.PRE_REQUEST
    post_request = hooks.POST_REQUEST
    child_exit = hooks.CHILD_EXIT
    worker_exit = hooks.WORKER_EXIT
    nworkers_changed = hooks.NWORKERS_CHANGED
    on_exit = hooks.ON_EXIT

    # What gunicorn's Config has besides.

    def set(self, name: str, value: object) -> None:
        """For hooks, as `on_starting`: from now on the setting reads as this. What was made of it before stays."""
        if name not in BY_NAME:
            raise AttributeError(f"No configuration setting for: {name}")
        self._resolved = {**self._resolved, name: Resolved(BY_NAME[name].kind.parse(value), "a hook")}

    @property
    def settings(self) -> Mapping[str, foreign.SettingView]:
        """`cfg.settings["bind"].get()`: every setting of gunicorn's and of ours, with the types gunicorn gives them."""
        return foreign.SettingViews(_NAMES, self._value_of)

    def _value_of(self, name: str) -> object:
        return self._resolved[name].value if name in self._resolved else _REFUSED[name]

    @property
    def address(self) -> list[tuple[str, int] | str | int]:
        """What `bind` means: (host, port), the path of a unix socket, or a descriptor."""
        return [addresses.parse(text).as_gunicorn for text in self.bind]

    @property
    def uid(self) -> int:
        return self.user

    @property
    def gid(self) -> int:
        return self.group

    @property
    def env(self) -> dict[str, str]:
        return dict(self.raw_env)

    @property
    def worker_class_str(self) -> str:
        name: str | type = self.worker_class
        if isinstance(name, str):
            is_sync = name == "sync" or name.endswith("SyncWorker")
            return "gthread" if is_sync and self.threads > 1 else name
        return name.__name__

    @property
    def is_ssl(self) -> bool:
        return False

    @property
    def ssl_options(self) -> dict[str, object]:
        return {}

    if not TYPE_CHECKING:  # our own code never asks for these, and type checkers should say so if it does

        def __getattr__(self, name: str) -> Any:
            """The default of a setting of gunicorn's that this version refuses: `cfg.certfile` is None."""
            try:
                return foreign.as_gunicorn(name, _REFUSED[name])
            except KeyError:
                raise AttributeError(f"No configuration setting for: {name}") from None
