"""gunicorn's settings that this version does not have: recognised and refused, never ignored.

A flag that is accepted and does nothing is a promise broken in silence.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Takes(Enum):
    """What follows the flag, so that the parser reads on behind it correctly."""

    NOTHING = "nothing"
    VALUE = "value"
    MAYBE = "maybe"


@dataclass(frozen=True, slots=True)
class Unavailable:
    name: str
    flags: tuple[str, ...]
    takes: Takes = Takes.VALUE

    @property
    def sentence(self) -> str:
        return f"gunicorn's setting {self.name} is not available in this version of tricorn."


UNAVAILABLE = (
    Unavailable("config", ("-c", "--config")),
    Unavailable("max_requests", ("--max-requests",)),
    Unavailable("max_requests_jitter", ("--max-requests-jitter",)),
    Unavailable("reload", ("--reload",), Takes.NOTHING),
    Unavailable("reload_engine", ("--reload-engine",)),
    Unavailable("reload_extra_files", ("--reload-extra-file",)),
    Unavailable("spew", ("--spew",), Takes.NOTHING),
    Unavailable("print_config", ("--print-config",), Takes.NOTHING),
    Unavailable("reuse_port", ("--reuse-port",), Takes.NOTHING),
    Unavailable("daemon", ("-D", "--daemon"), Takes.NOTHING),
    Unavailable("pidfile", ("-p", "--pid")),
    Unavailable("worker_tmp_dir", ("--worker-tmp-dir",)),
    Unavailable("user", ("-u", "--user")),
    Unavailable("group", ("-g", "--group")),
    Unavailable("initgroups", ("--initgroups",), Takes.NOTHING),
    Unavailable("proc_name", ("-n", "--name")),
    Unavailable("disable_redirect_access_to_syslog", ("--disable-redirect-access-to-syslog",), Takes.NOTHING),
    Unavailable("capture_output", ("--capture-output",), Takes.NOTHING),
    Unavailable("logger_class", ("--logger-class",)),
    Unavailable("logconfig", ("--log-config",)),
    Unavailable("logconfig_json", ("--log-config-json",)),
    Unavailable("syslog_addr", ("--log-syslog-to",)),
    Unavailable("syslog", ("--log-syslog",), Takes.NOTHING),
    Unavailable("syslog_prefix", ("--log-syslog-prefix",)),
    Unavailable("syslog_facility", ("--log-syslog-facility",)),
    Unavailable("enable_stdio_inheritance", ("-R", "--enable-stdio-inheritance"), Takes.NOTHING),
    Unavailable("statsd_host", ("--statsd-host",)),
    Unavailable("dogstatsd_tags", ("--dogstatsd-tags",)),
    Unavailable("statsd_prefix", ("--statsd-prefix",)),
    Unavailable("enable_backlog_metric", ("--enable-backlog-metric",), Takes.NOTHING),
    Unavailable("paste", ("--paste", "--paster")),
    Unavailable("raw_paste_global_conf", ("--paste-global",)),
    Unavailable("proxy_protocol", ("--proxy-protocol",), Takes.MAYBE),
    Unavailable("proxy_allow_ips", ("--proxy-allow-from",)),
    Unavailable("protocol", ("--protocol",)),
    Unavailable("uwsgi_allow_ips", ("--uwsgi-allow-from",)),
    Unavailable("keyfile", ("--keyfile",)),
    Unavailable("certfile", ("--certfile",)),
    Unavailable("ssl_version", ("--ssl-version",)),
    Unavailable("cert_reqs", ("--cert-reqs",)),
    Unavailable("ca_certs", ("--ca-certs",)),
    Unavailable("suppress_ragged_eofs", ("--suppress-ragged-eofs",), Takes.NOTHING),
    Unavailable("do_handshake_on_connect", ("--do-handshake-on-connect",), Takes.NOTHING),
    Unavailable("ciphers", ("--ciphers",)),
    Unavailable("http_protocols", ("--http-protocols",)),
    Unavailable("http2_cleartext", ("--http2-cleartext",)),
    Unavailable("http2_max_concurrent_streams", ("--http2-max-concurrent-streams",)),
    Unavailable("http2_initial_window_size", ("--http2-initial-window-size",)),
    Unavailable("http2_max_frame_size", ("--http2-max-frame-size",)),
    Unavailable("http2_max_header_list_size", ("--http2-max-header-list-size",)),
    Unavailable("asgi_loop", ("--asgi-loop",)),
    Unavailable("asgi_lifespan", ("--asgi-lifespan",)),
    Unavailable("asgi_disconnect_grace_period", ("--asgi-disconnect-grace-period",)),
    Unavailable("websocket_max_message_size", ("--websocket-max-message-size",)),
    Unavailable("http_parser", ("--http-parser",)),
    Unavailable("root_path", ("--root-path",)),
    Unavailable("dirty_apps", ("--dirty-app",)),
    Unavailable("dirty_workers", ("--dirty-workers",)),
    Unavailable("dirty_timeout", ("--dirty-timeout",)),
    Unavailable("dirty_threads", ("--dirty-threads",)),
    Unavailable("dirty_graceful_timeout", ("--dirty-graceful-timeout",)),
    Unavailable("control_socket", ("--control-socket",)),
    Unavailable("control_socket_mode", ("--control-socket-mode",)),
    Unavailable("control_socket_disable", ("--no-control-socket",), Takes.NOTHING),
)
