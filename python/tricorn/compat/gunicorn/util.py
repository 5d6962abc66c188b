"""The functions that configuration files, worker classes and programs use. Names and results are gunicorn's."""

from __future__ import annotations

import importlib
import io
import os
import socket
import sys
from contextlib import suppress
from typing import Any
from urllib.parse import unquote_to_bytes

from tricorn.compat.absent import refuse
from tricorn.config.load import working_directory as getcwd
from tricorn.gateway.app_loader import load as import_app

__all__ = ["chown", "getcwd", "import_app"]

chown = os.chown


def load_class(uri: Any, default: str = "", section: str = "") -> Any:
    """The class of a dotted name; a class is taken as it is. Entry points (`egg:`) are not served."""
    if isinstance(uri, type):
        return uri
    module, dot, name = str(uri).rpartition(".")
    if not dot:
        raise RuntimeError(f"class uri {uri!r} invalid or not found: expected module.Class")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise RuntimeError(f"class uri {uri!r} invalid or not found: {error}") from error


def parse_address(netloc: str, default_port: str = "8000") -> tuple[str, int] | str | int:
    """(host, port), the path of a unix socket, or a descriptor."""
    if netloc.startswith("unix:"):
        return netloc[5:].removeprefix("//")
    if netloc.startswith("fd://"):
        return _number(netloc[5:], "file descriptor")
    host = netloc.removeprefix("tcp://")
    port = default_port
    if host.startswith("[") and "]" in host:
        host, _, rest = host[1:].partition("]")
        port = rest.removeprefix(":") or default_port
    elif ":" in host:
        host, _, port = host.partition(":")
    return (host or ("" if ":" in netloc else "0.0.0.0")).lower(), _number(port, "port number")


def _number(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise RuntimeError(f"{text!r} is not a valid {what}.") from None


def is_ipv6(addr: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, addr)
    except (OSError, ValueError):
        return False
    return True


def http_date(timestamp: float | None = None) -> str:
    """`Sat, 21 Nov 2026 01:02:32 GMT`"""
    from email.utils import formatdate

    return formatdate(timestamp, localtime=False, usegmt=True)


def check_is_writable(path: str) -> None:
    try:
        with open(path, "a"):
            pass
    except OSError as error:
        raise RuntimeError(f"Error: {path!r} isn't writable [{error!r}]") from error


def unlink(filename: str) -> None:
    """The file need not exist."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(filename)


def close_on_exec(fd: int) -> None:
    os.set_inheritable(fd, False)


def set_non_blocking(fd: int) -> None:
    os.set_blocking(fd, False)


def to_bytestring(value: str | bytes, encoding: str = "utf8") -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value.encode(encoding)


def bytes_to_str(b: str | bytes) -> str:
    return b if isinstance(b, str) else b.decode("latin-1")


def warn(msg: str) -> None:
    first, *others = msg.splitlines() or [""]
    lines = ["", f"WARNING: {first}", *others]
    sys.stderr.write("".join(f"!!! {line}".rstrip() + "\n" for line in lines) + "!!!\n\n")
    sys.stderr.flush()


def _setproctitle(title: str) -> None:
    """With `setproctitle` installed; without it the process keeps its title, as with gunicorn."""
    with suppress(ImportError):
        importlib.import_module("setproctitle").setproctitle(f"gunicorn: {title}")


def close(sock: Any) -> None:
    with suppress(OSError):
        sock.close()


def has_fileno(obj: Any) -> bool:
    try:
        obj.fileno()
    except (AttributeError, OSError, io.UnsupportedOperation):
        return False
    return True


def is_hoppish(header: str) -> bool:
    """Whether a header field is about the connection (RFC 9110, 7.6.1)."""
    return header.lower().strip() in _HOP_BY_HOP


def unquote_to_wsgi_str(string: str) -> str:
    return unquote_to_bytes(string).decode("latin-1")


def reraise(tp: type[BaseException], value: BaseException | None, tb: Any = None) -> None:
    raise (tp() if value is None else value).with_traceback(tb)


def seed() -> None:
    import random

    random.seed()


_HOP_BY_HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailers",
        "transfer-encoding",
        "upgrade",
    )
)

__getattr__ = refuse(__name__)
