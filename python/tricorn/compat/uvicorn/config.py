"""uvicorn's configuration, and that of its logs, which programs change and hand on as `log_config`."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from tricorn.compat.absent import refuse

__all__ = ["LOGGING_CONFIG", "LOG_LEVELS", "STARTUP_FAILURE", "Config"]

__getattr__ = refuse(__name__)

STARTUP_FAILURE = 3

LOG_LEVELS: dict[str, int] = {
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": 5,
}

LOGGING_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "default": {
            "()": "uvicorn.logging.DefaultFormatter",
            "fmt": "%(levelprefix)s %(message)s",
            "use_colors": None,
        },
        "access": {
            "()": "uvicorn.logging.AccessFormatter",
            "fmt": '%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s',
        },
    },
    "handlers": {
        "default": {"formatter": "default", "class": "logging.StreamHandler", "stream": "ext://sys.stderr"},
        "access": {"formatter": "access", "class": "logging.StreamHandler", "stream": "ext://sys.stdout"},
    },
    "loggers": {
        "uvicorn": {"handlers": ["default"], "level": "INFO", "propagate": False},
        "uvicorn.error": {"level": "INFO"},
        "uvicorn.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
    },
}


DEFAULTS: Mapping[str, Any] = {
    "host": "127.0.0.1",
    "port": 8000,
    "uds": None,
    "fd": None,
    "loop": "auto",
    "http": "auto",
    "http2": False,
    "ws": "auto",
    "ws_max_size": 16 * 1024 * 1024,
    "ws_max_queue": 32,
    "ws_ping_interval": 20.0,
    "ws_ping_timeout": 20.0,
    "ws_per_message_deflate": True,
    "lifespan": "auto",
    "env_file": None,
    "log_config": deepcopy(LOGGING_CONFIG),
    "log_level": None,
    "access_log": True,
    "use_colors": None,
    "interface": "auto",
    "reload": False,
    "reload_dirs": None,
    "reload_delay": 0.25,
    "reload_includes": None,
    "reload_excludes": None,
    "workers": 1,
    "proxy_headers": True,
    "server_header": True,
    "date_header": True,
    "forwarded_allow_ips": None,
    "root_path": "",
    "limit_concurrency": None,
    "limit_max_requests": None,
    "limit_max_requests_jitter": 0,
    "backlog": 2048,
    "timeout_keep_alive": 5,
    "timeout_notify": 30,
    "timeout_graceful_shutdown": None,
    "timeout_worker_healthcheck": 5,
    "callback_notify": None,
    "ssl_keyfile": None,
    "ssl_certfile": None,
    "ssl_keyfile_password": None,
    "ssl_version": None,
    "ssl_cert_reqs": None,
    "ssl_ca_certs": None,
    "ssl_ciphers": None,
    "ssl_context_factory": None,
    "headers": None,
    "factory": False,
    "h11_max_incomplete_event_size": None,
    "reset_contextvars": False,
}
"""The arguments of `Config` after the application, in their order."""

OF_PROCESSES = frozenset(
    ("workers", "reload", "reload_dirs", "reload_delay", "reload_includes", "reload_excludes", "limit_max_requests")
)
"""Without effect on a server that runs on the program's loop, as with uvicorn; so is `loop`."""


class Config:
    """uvicorn's configuration. Attributes may be changed until the server starts."""

    def __init__(self, app: Any, *positional: Any, **named: Any) -> None:
        values = dict(zip(DEFAULTS, positional, strict=False)) | named
        if unknown := values.keys() - DEFAULTS.keys():
            raise TypeError(f"Config.__init__() got an unexpected keyword argument {min(unknown)!r}")
        self.app = app
        self.loaded = False
        self.workers: int
        for name, default in DEFAULTS.items():
            setattr(self, name, values.get(name, LOGGING_CONFIG if name == "log_config" else default))
        self.workers = self.workers or 1

    def given(self, *, embedded: bool = False) -> dict[str, Any]:
        """Returns the arguments for `tricorn.run`, or for `EmbeddedServer`, that differ from uvicorn's defaults."""
        found = {name: value for name, default in DEFAULTS.items() if (value := getattr(self, name)) != default}
        if self.uds is None and self.fd is None:  # type: ignore[attr-defined]
            found |= {"host": self.host, "port": self.port}  # type: ignore[attr-defined]
        if found.get("log_config", ...) is None:
            del found["log_config"]
        elif self.access_log and "log_config" not in found:  # type: ignore[attr-defined]
            found["access_log"] = True  # uvicorn writes one unless it is told not to
        if isinstance(level := found.get("log_level"), int):
            found["log_level"] = logging.getLevelName(level).lower()
        if embedded:
            found = {name: value for name, value in found.items() if name not in OF_PROCESSES and name != "loop"}
        return found

    @property
    def is_ssl(self) -> bool:
        return bool(self.ssl_keyfile or self.ssl_certfile)  # type: ignore[attr-defined]

    @property
    def should_reload(self) -> bool:
        return isinstance(self.app, str) and bool(self.reload)  # type: ignore[attr-defined]

    @property
    def use_subprocess(self) -> bool:
        return bool(self.reload or self.workers > 1)  # type: ignore[attr-defined]

    def load(self) -> None:
        """Does nothing: the server loads the application when it starts."""
        self.loaded = True

    def configure_logging(self) -> None:
        """Does nothing: the server configures its logs when it starts."""

    def bind_socket(self) -> socket.socket:
        """Returns a bound socket that does not listen yet, for `Server.serve(sockets=[…])`."""
        from tricorn.arbiter.listeners import sockets

        host, port = self.host, self.port  # type: ignore[attr-defined]
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            return sockets.bind_tcp(family, (host, port))
        except OSError as error:
            logging.getLogger("uvicorn.error").error("%s", error)
            sys.exit(1)
