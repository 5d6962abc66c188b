"""Requests of the setting `warmup`, which reach the application without a socket or the core. This is WSGI's side."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tricorn.config.kinds import WARMUP_TARGET
from tricorn.errors import BootError
from tricorn.gateway.wsgi import base_environ
from tricorn.record import Record
from tricorn.version import __version__

if TYPE_CHECKING:
    from tricorn.log import Logger

CLIENT = "127.0.0.1"

USER_AGENT = f"tricorn/{__version__} (warmup)"


class Target(Record):
    """Parts of an entry of the setting."""

    scheme: str
    host: str
    """Value of the Host header."""
    path: str
    """Not decoded."""
    query: str

    @property
    def server(self) -> tuple[str, int]:
        """The name and the port of the host."""
        name, colon, port = self.host.rpartition(":")
        if colon and port.isdigit():
            return name, int(port)
        return self.host, 443 if self.scheme == "https" else 80

    @property
    def decoded(self) -> bytes:
        """The path without percent-encoding."""
        return re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes.fromhex(found[1].decode()), self.path.encode())

    @property
    def raw_uri(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        return ("host", self.host), ("user-agent", USER_AGENT), ("accept", "*/*")


Ask = Callable[[Target], int | None]
"""Has the application answer, and returns the status; None: the worker was told to leave. Raises what it raises."""


def target_of(text: str) -> Target:
    """Makes a target of an entry of `warmup`."""
    found = re.fullmatch(WARMUP_TARGET, text)
    assert found is not None, "the setting is checked"
    scheme, host, path, query = found.groups()
    return Target(scheme or "http", host or "localhost", path or "/", query or "")


def ask_wsgi(
    application: Callable[..., Any], log: Logger, *, multithread: bool, multiprocess: bool, worker: int
) -> Ask:
    """`worker` is the slot of the worker, and 0 in a mold."""
    base = base_environ(log, multithread=multithread, multiprocess=multiprocess, worker=worker)
    return lambda target: _call(application, make_environ(base, target))


def make_environ(base: dict[str, object], target: Target) -> dict[str, object]:
    """Makes the environ of a request as the core does, without the connection's `gunicorn.socket`."""
    name, port = target.server
    path = target.decoded.decode("latin-1")
    environ = base | {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": _below(path, str(base["SCRIPT_NAME"])),
        "QUERY_STRING": target.query,
        "RAW_URI": target.raw_uri,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": name,
        "SERVER_PORT": str(port),
        "REMOTE_ADDR": CLIENT,
        "REMOTE_PORT": "0",
        "wsgi.url_scheme": target.scheme,
        "wsgi.input": io.BytesIO(),
        "wsgi.early_hints": _drop,
        "tricorn.queue_time": 0.0,
    }
    environ.update((f"HTTP_{name.upper().replace('-', '_')}", value) for name, value in target.headers)
    return environ


def _below(path: str, mount: str) -> str:
    rest = path.removeprefix(mount)
    return rest if not rest or rest.startswith("/") else path


def _call(application: Callable[..., Any], environ: dict[str, object]) -> int:
    statuses: list[str] = []

    def start_response(status: str, headers: object, exc_info: object = None) -> Callable[[bytes], object]:
        statuses.append(status)
        return _drop

    result = application(environ, start_response)
    try:
        for piece in result:
            _drop(piece)
    finally:
        if hasattr(result, "close"):
            result.close()
    if not statuses:
        raise BootError("The application did not start a response")
    return int(statuses[-1].split()[0])


def _drop(part: object) -> None:
    """Nobody waits for the response."""
