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
    flags: tuple[str, ...] = ()
    default: object = None
    """gunicorn's, which is what code written for gunicorn reads; asking for no more than that is no mistake."""
    takes: Takes = Takes.VALUE

    def asks_for_nothing(self, value: object) -> bool:
        """Whether a configuration file that says so is content with what there is: `keyfile = None`."""
        if isinstance(value, str) and isinstance(self.default, tuple):
            value = value.split(",")
        if isinstance(value, list):
            value = tuple(value)
        return value in (None, False, "", (), self.default)

    @property
    def sentence(self) -> str:
        return f"gunicorn's setting {self.name} is not available in this version of tricorn."


UNAVAILABLE = (
    Unavailable("syslog_addr", ("--log-syslog-to",), "udp://localhost:514"),
    Unavailable("syslog", ("--log-syslog",), False, takes=Takes.NOTHING),
    Unavailable("syslog_prefix", ("--log-syslog-prefix",)),
    Unavailable("syslog_facility", ("--log-syslog-facility",), "user"),
    Unavailable("statsd_host", ("--statsd-host",)),
    Unavailable("dogstatsd_tags", ("--dogstatsd-tags",), ""),
    Unavailable("statsd_prefix", ("--statsd-prefix",), ""),
    Unavailable("enable_backlog_metric", ("--enable-backlog-metric",), False, takes=Takes.NOTHING),
    Unavailable("paste", ("--paste", "--paster")),
    Unavailable("raw_paste_global_conf", ("--paste-global",), ()),
    Unavailable("proxy_protocol", ("--proxy-protocol",), "off", takes=Takes.MAYBE),
    Unavailable("proxy_allow_ips", ("--proxy-allow-from",), ("127.0.0.1", "::1")),
    Unavailable("protocol", ("--protocol",), "http"),
    Unavailable("uwsgi_allow_ips", ("--uwsgi-allow-from",), ("127.0.0.1", "::1")),
    Unavailable("keyfile", ("--keyfile",)),
    Unavailable("certfile", ("--certfile",)),
    Unavailable("ssl_version", ("--ssl-version",)),
    Unavailable("cert_reqs", ("--cert-reqs",), 0),
    Unavailable("ca_certs", ("--ca-certs",)),
    Unavailable("suppress_ragged_eofs", ("--suppress-ragged-eofs",), True, takes=Takes.NOTHING),
    Unavailable("do_handshake_on_connect", ("--do-handshake-on-connect",), False, takes=Takes.NOTHING),
    Unavailable("ciphers", ("--ciphers",)),
    Unavailable("ssl_context"),
    Unavailable("http_protocols", ("--http-protocols",), ("h1",)),
    Unavailable("http2_cleartext", ("--http2-cleartext",), "off"),
    Unavailable("http2_max_concurrent_streams", ("--http2-max-concurrent-streams",), 100),
    Unavailable("http2_initial_window_size", ("--http2-initial-window-size",), 65535),
    Unavailable("http2_max_frame_size", ("--http2-max-frame-size",), 16384),
    Unavailable("http2_max_header_list_size", ("--http2-max-header-list-size",), 65536),
    Unavailable("dirty_apps", ("--dirty-app",), ()),
    Unavailable("dirty_workers", ("--dirty-workers",), 0),
    Unavailable("dirty_timeout", ("--dirty-timeout",), 300),
    Unavailable("dirty_threads", ("--dirty-threads",), 1),
    Unavailable("dirty_graceful_timeout", ("--dirty-graceful-timeout",), 30),
    Unavailable("on_dirty_starting"),
    Unavailable("dirty_post_fork"),
    Unavailable("dirty_worker_init"),
    Unavailable("dirty_worker_exit"),
    Unavailable("control_socket", ("--control-socket",)),
    Unavailable("control_socket_mode", ("--control-socket-mode",), 0o600),
)
