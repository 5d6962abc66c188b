"""Addresses of syslog and statsd, in gunicorn's forms.

statsd_host    HOST  HOST:PORT  [V6]:PORT  unix://PATH
syslog_addr    udp://HOST:PORT  tcp://HOST:PORT  unix://PATH  unix://PATH#dgram  unix://PATH#stream
"""

from __future__ import annotations

from typing import Literal

from tricorn.config.addresses import MOST_PORT
from tricorn.config.validators import Refused, Text, digits
from tricorn.record import Record

STATSD_PORT, SYSLOG_PORT = 8125, 514

Transport = Literal["udp", "tcp", "unix", "dgram", "stream"]
"""The way to a collector; of a unix socket of either type datagrams are tried first."""


class Collector(Record):
    transport: Transport
    host: str
    """A path for those of the file system."""
    port: int = 0

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if self.transport in ("udp", "tcp") else self.host


class StatsdHost(Record):
    """The address as gunicorn has it: (host, port), or the path of a unix socket."""

    metavar: str = "STATSD_ADDR"

    def parse(self, raw: object) -> tuple[str, int] | str | None:
        if isinstance(raw, (tuple, list)) and len(raw) == 2:
            raw = f"{raw[0]}:{raw[1]}" if ":" not in str(raw[0]) else f"[{raw[0]}]:{raw[1]}"
        text = "" if raw is None else Text().parse(raw)
        if not text:
            return None
        for scheme in ("unix://", "unix:"):
            if text.startswith(scheme) and not text.removeprefix(scheme).isdigit():
                return _path(text.removeprefix(scheme))
        return _host_and_port(text.removeprefix("tcp://"), STATSD_PORT)


class SyslogAddress(Record):
    """Checked here and kept as it was written, as gunicorn's code expects it."""

    metavar: str = "SYSLOG_ADDR"

    def parse(self, raw: object) -> str:
        text = Text().parse(raw)
        syslog(text)
        return text


def statsd(value: tuple[str, int] | str) -> Collector:
    return Collector("unix", value) if isinstance(value, str) else Collector("udp", *value)


def syslog(text: str) -> Collector:
    scheme, separator, rest = text.partition("://")
    if scheme == "unix" and separator:
        path, _, kind = rest.partition("#")
        match kind:
            case "":
                return Collector("unix", _path(path))
            case "dgram" | "stream":
                return Collector(kind, _path(path))
        raise Refused(f"expected #dgram or #stream behind the path, got #{kind}")
    if scheme in ("udp", "tcp") and separator:
        host, port = _host_and_port(rest, SYSLOG_PORT)
        return Collector("udp" if scheme == "udp" else "tcp", host or "localhost", port)
    raise Refused("expected udp://HOST:PORT, tcp://HOST:PORT or unix://PATH, which may end with #dgram or #stream")


def _path(text: str) -> str:
    if not text:
        raise Refused("expected the path of a socket behind unix://")
    return text


def _host_and_port(text: str, default: int) -> tuple[str, int]:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    number = digits(port, MOST_PORT) if port else default
    if number is None:
        raise Refused(f"expected a port number behind the host, got {port!r}")
    return host.lower(), number
