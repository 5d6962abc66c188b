"""Glue between a WSGI application and the core."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from tricorn.gateway.reports import to_log
from tricorn.version import __version__

if TYPE_CHECKING:
    from tricorn._core import WsgiGateway
    from tricorn.log import Logger


SERVER_SOFTWARE = f"gunicorn/27.0.1 (tricorn/{__version__})"
"""Value in the environ and the process environment. Applications look for the word gunicorn there."""


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class FileWrapper:
    """`wsgi.file_wrapper` (PEP 3333). The core recognises it and hands real files to sendfile."""

    __slots__ = ("blksize", "close", "filelike")

    def __init__(self, filelike: Readable, blksize: int = 8192) -> None:
        self.filelike = filelike
        self.blksize = blksize
        # PEP 3333: close() exists if, and only if, the file has one.
        close: Callable[[], object] | None = getattr(filelike, "close", None)
        if close is not None:
            self.close = close

    def __iter__(self) -> Iterator[bytes]:
        return iter(lambda: self.filelike.read(self.blksize), b"")


class ErrorStream:
    """`wsgi.errors`: text goes to the error log as it is."""

    __slots__ = ("_log",)

    def __init__(self, log: Logger) -> None:
        self._log = log

    def write(self, text: str) -> int:
        self._log.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._log.write(line)

    def flush(self) -> None:
        self._log.flush()


def base_environ(log: Logger, *, multithread: bool, multiprocess: bool, worker: int) -> dict[str, object]:
    """The keys that are the same for every request. The environment of the process is not among them.

    `worker` is the slot of the worker.
    """
    return {
        "wsgi.version": (1, 0),
        "wsgi.errors": ErrorStream(log),
        "wsgi.multithread": multithread,
        "wsgi.multiprocess": multiprocess,
        "wsgi.run_once": False,
        "wsgi.file_wrapper": FileWrapper,
        "wsgi.input_terminated": True,
        "SERVER_SOFTWARE": SERVER_SOFTWARE,
        "SCRIPT_NAME": os.environ.get("SCRIPT_NAME", ""),
        "tricorn.worker": worker,
    }


def make_gateway(
    application: Callable[..., Any],
    log: Logger,
    *,
    multithread: bool,
    multiprocess: bool,
    worker: int,
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
) -> WsgiGateway:
    """`before` and `after` are called around each request (`observe`)."""
    from tricorn._core import WsgiGateway

    environ = base_environ(log, multithread=multithread, multiprocess=multiprocess, worker=worker)
    return WsgiGateway(application, environ, *to_log(log), before, after)
