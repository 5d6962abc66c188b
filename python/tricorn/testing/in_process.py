"""`embedded`: the core on threads of the test process, for WSGI applications.

There is no arbiter, no worker and no configuration. The scoreboard is memory of this process. What would end a worker
(`timeout`, `max_requests`) is off.
"""

from __future__ import annotations

import logging
import mmap
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from tricorn.config import program
from tricorn.config.resolve import resolve
from tricorn.gateway import interfaces, wsgi
from tricorn.testing.server import GRACE, ServerError
from tricorn.workers import native
from tricorn.workers.core_options import core_options
from tricorn.workers.gthread import ThreadWorker

if TYPE_CHECKING:
    from tricorn.log import Logger

BACKLOG = 128


@contextmanager
def embedded(
    app: Callable[..., Any], *, threads: int = 4, host: str = "127.0.0.1", port: int = 0
) -> Iterator[Embedded]:
    """Serves the WSGI application `app` on threads of this process while the block runs."""
    server = Embedded(app, listen(host, port), threads=threads)
    try:
        yield server
    finally:
        server.stop()


class Embedded:
    """A running server in this process. `stop` shuts it down."""

    def __init__(self, app: Callable[..., Any], listener: socket.socket, *, threads: int = 4) -> None:
        """Starts serving on `listener`, which `stop` closes."""
        interface = interfaces.interface_of(app)
        if interface not in (None, "WSGI"):
            listener.close()
            raise TypeError(f"only WSGI applications can be embedded, and this one is for {interface}: use serve()")
        self._listener: socket.socket | None = listener
        host, port = listener.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        config = resolve([program.read({"threads": threads, "timeout": 0})])
        options = core_options(config, ThreadWorker, siblings=False)
        page = mmap.mmap(-1, native.scoreboard_bytes(threads))
        self._core = native.Core([listener.dup().detach()], options | {"max_requests": 0, "access_log": None}, page)
        log = cast("Logger", _Log())
        gateway = wsgi.make_gateway(app, log, multithread=threads > 1, multiprocess=False, worker=1)
        self._core.start()
        self._threads = [
            threading.Thread(target=self._core.serve, args=(gateway,), name=f"tricorn-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finishes running requests, then closes all connections. A second call does nothing."""
        if self._listener is None:
            return
        self._core.drain()
        if not self._have_ended():
            self._core.stop()
        with suppress(OSError):
            # Closed for processes that were forked meanwhile and have the descriptor, too.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._listener = None
        if not self._have_ended():
            raise ServerError("A call of the application goes on: the embedded server cannot be closed.")
        self._core.close()

    def _have_ended(self) -> bool:
        """Waits for the threads, for `GRACE` seconds at most."""
        end = time.monotonic() + GRACE
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)


class _Log:
    """Error log of a gateway. Records go to the test's handlers, `wsgi.errors` to its stderr."""

    def __init__(self) -> None:
        logger = logging.getLogger("tricorn.testing")
        self.error, self.warning, self.debug = logger.error, logger.warning, logger.debug

    def write(self, text: str) -> None:
        sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket for the core."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listener.setblocking(False)
    return listener
