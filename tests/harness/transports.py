"""How requests come: as HTTP/1 in the clear or over TLS, or as streams of HTTP/2.

A test that takes a `Transport` is the same for all. What differs is said here: a connection in the clear goes to
another worker with its request, of the others the request alone goes, and is lent.
"""

from __future__ import annotations

import atexit
import mmap
import shutil
import ssl
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from tricorn._core import publish_tls, tls_page_bytes
from tricorn.tls import files
from tricorn.tls.plan import Pair, Plan

from tests.harness.certificates import Authority, Issued
from tests.harness.frames import Frames
from tests.harness.http2_client import Http2Client
from tests.harness.tls import SecureFrames, SecureWire, client
from tests.harness.wire import Address, Reply, Short, Wire

Name = Literal["clear", "tls", "http2"]
NAMES: tuple[Name, ...] = ("clear", "tls", "http2")
HTTP2: dict[str, Any] = {"http_protocols": "h2,h1", "http2_cleartext": "prior-knowledge"}
CORE_TLS: dict[str, Any] = {
    "doors": [(True, None, None, None)],
    "tls_handshake_timeout": 30.0,
    "tls_pending_handshakes": 1000,
    "tls_buffer_total": 16 << 20,
}
CORE_HTTP2: dict[str, Any] = {
    "http_protocols": ["h2", "h1"],
    "http2_cleartext": "prior-knowledge",
    "http2_max_concurrent_streams": 100,
    "http2_max_header_list_size": 65_536,
    "http2_initial_window_size": 65_535,
    "http2_max_window": 1 << 20,
    "http2_reset_limit": 200,
    "http2_control_limit": 1000,
    "http2_idle_timeout": 60.0,
}


class Transport:
    def __init__(self, name: Name) -> None:
        self.name = name
        self.lends = name != "clear"
        """A request that goes to another worker leaves its connection behind."""

    def __repr__(self) -> str:
        return self.name

    @property
    def settings(self) -> dict[str, Any]:
        """Of a server that has it."""
        match self.name:
            case "clear":
                return {}
            case "tls":
                issued = _issued()
                return {"certfile": str(issued.certificate), "keyfile": str(issued.key)}
            case "http2":
                return HTTP2

    @property
    def lines(self) -> str:
        """The same for a configuration file."""
        return "".join(f"{name} = {value!r}\n" for name, value in self.settings.items())

    @property
    def core(self) -> dict[str, Any]:
        """Options of a core that has one listener."""
        match self.name:
            case "clear":
                return {}
            case "tls":
                return CORE_TLS | {"tls_page": _page()}
            case "http2":
                return CORE_HTTP2

    def connect(self, address: Address, **options: Any) -> Wire:
        match self.name:
            case "clear":
                return Wire(address, **options)
            case "tls":
                return SecureWire(address, _context(), **options)
            case "http2":
                return Http2Client(address, **options)

    def frames(self, address: Address, target: str, **options: Any) -> Frames:
        """A WebSocket, which comes by HTTP/1."""
        if self.name == "tls":
            return SecureFrames(address, target, context=_context(), **options)
        return Frames(address, target, **options)

    def http1(self, address: Address, **options: Any) -> Wire:
        """A connection for bytes of HTTP/1."""
        return self.connect(address, **options) if self.name == "tls" else Wire(address, **options)


CLEAR, TLS, HTTP_2 = map(Transport, NAMES)
TRANSPORTS = pytest.mark.parametrize("transport", [CLEAR, TLS, HTTP_2], ids=str)
LENDING = pytest.mark.parametrize("transport", [TLS, HTTP_2], ids=str)
"""Those of which the request is lent."""


def named(name: Name) -> Transport:
    return {"clear": CLEAR, "tls": TLS, "http2": HTTP_2}[name]


def is_cut_off(wire: Wire) -> bool:
    """Whether no response comes, or not to its end: its connection is closed, or its stream reset."""
    if isinstance(wire, Http2Client) and not wire.is_asking:
        wire.session.end()
        return True
    try:
        wire.reply()
    except (Short, ConnectionError):
        return True
    return False


def announces_end(wire: Wire, reply: Reply) -> bool:
    """Whether no request may follow this response on its connection."""
    return wire.session.goaway is not None if isinstance(wire, Http2Client) else reply.closes


@cache
def _directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="tricorn-transports-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


@cache
def _authority() -> Authority:
    return Authority(_directory())


@cache
def _context() -> ssl.SSLContext:
    return client(_authority())


@cache
def _issued() -> Issued:
    return _authority().issue("server")


@cache
def _page() -> mmap.mmap:
    """What workers read certificates from, as the arbiter writes it."""
    issued = _issued()
    plan = Plan((Pair(str(issued.certificate), str(issued.key)),))
    page = mmap.mmap(-1, tls_page_bytes())
    publish_tls(page, {**files.read(plan), "ticket_keys": []})
    return page
