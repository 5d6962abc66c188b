"""`serve`: runs a server in separate processes for a test."""

from __future__ import annotations

import os
import pickle
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tricorn.testing import process

START_TIMEOUT = 30.0
GRACE = 5
"""Seconds: `graceful_timeout` where the test sets none."""
KILL_AFTER = 5.0
"""Seconds beyond `graceful_timeout`, until the server is killed."""
TAIL = 32 << 10
"""Bytes: of a log, what a failure shows."""

running: set[Server] = set()
"""The servers of this process that have not been stopped."""
_starting = threading.Lock()
"""No fork between a pipe and its place in `running`: its write end would stay open there."""


class ServerError(Exception):
    """The server did not start, or did not stop in time. The message ends with its log."""


@contextmanager
def serve(
    app: Callable[..., Any] | str,
    *,
    worker_class: str | None = None,
    start_timeout: float = START_TIMEOUT,
    **settings: Any,
) -> Iterator[Server]:
    """Context manager that serves `app` in separate processes. The server is ready when the block starts.

    `app` is a callable, served by a fork of this process, or `"module:attribute"`, served by a new interpreter.
    Settings are those of `tricorn.run`; environment variables are ignored. The server listens on a free port of
    127.0.0.1, unless `bind` is set. Raises ServerError if it does not start.
    """
    server = Server(app, worker_class=worker_class, start_timeout=start_timeout, **settings)
    try:
        yield server
    except BaseException:
        server.show_log()
        raise
    finally:
        server.stop()


class Server:
    """A running server. It ends with `stop`, or with the test process."""

    url: str
    """URL of the first address, without a slash at the end. `unix:PATH` for a unix socket."""
    listeners: tuple[str, ...]
    """All addresses, as the log has them."""
    pid: int
    """Process id of the arbiter."""

    def __init__(
        self,
        app: Callable[..., Any] | str,
        *,
        worker_class: str | None = None,
        start_timeout: float = START_TIMEOUT,
        **settings: Any,
    ) -> None:
        if settings.get("daemon"):
            raise ValueError("a server of a test cannot be a daemon: it ends with its test")
        if worker_class is not None:
            settings["worker_class"] = worker_class
        if not settings.keys() & {"bind", "uds", "fd"}:
            settings["port"] = settings.get("port") or 0
        self._patience = float(settings.setdefault("graceful_timeout", GRACE)) + KILL_AFTER
        self._status: int | None = None
        self._log: str | None = None
        self._directory = tempfile.mkdtemp(prefix="tricorn-test-")
        self.log_file = os.path.join(self._directory, "log")
        self._life = -1
        self._pidfd = -1
        try:
            self._start(app, settings, time.monotonic() + start_timeout)
        except BaseException:
            self._kill()
            self._clean_up()
            raise

    @property
    def log(self) -> str:
        """Returns the output on stdout and stderr so far. It stays available after the server has stopped."""
        if self._log is not None:
            return self._log
        with open(self.log_file, encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self) -> int:
        """Stops the server like SIGTERM, and returns its exit status. A second call only returns the status."""
        if self._status is not None:
            return self._status
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)
        ended = self._has_ended(self._patience)
        self._status = self._kill()
        log = self._clean_up()
        if not ended:
            raise ServerError(f"The server was killed: it had not ended {self._patience:g} s after SIGTERM.\n{log}")
        return self._status

    def show_log(self) -> None:
        """Writes the end of the log to stderr, which pytest shows for failed tests."""
        sys.stderr.write(f"The log of the server at {self.url}:\n{self.log[-TAIL:]}")

    def _start(self, app: Callable[..., Any] | str, settings: dict[str, Any], deadline: float) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, open(self.log_file, "ab") as log:
            notify.bind("")  # the kernel names it (unix(7), autobind)
            with _starting:
                life, self._life = os.pipe()
                running.add(self)
                try:
                    order = process.Order(app, settings, notify.getsockname(), life)
                    self.pid = _spawn(order, log.fileno()) if isinstance(app, str) else _fork(order, log.fileno())
                finally:
                    os.close(life)
            self._pidfd = os.pidfd_open(self.pid)
            self._await_ready(notify, deadline)

    def _await_ready(self, notify: socket.socket, deadline: float) -> None:
        poll = select.poll()
        poll.register(notify, select.POLLIN)
        poll.register(self._pidfd, select.POLLIN)
        while True:
            events = dict(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
            if notify.fileno() in events:
                message = notify.recv(1 << 16)
                if message.startswith(process.LISTENING):
                    self.listeners = tuple(message[len(process.LISTENING) :].decode().split(","))
                    self.url = _reachable(self.listeners[0])
                elif process.READY in message.splitlines():
                    return
            elif self._pidfd in events:
                status = self._kill()
                raise ServerError(f"The server ended with status {status} before it served.\n{self.log[-TAIL:]}")
            elif not events:
                raise ServerError(f"The server was not ready in time.\n{self.log[-TAIL:]}")

    def _has_ended(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def _kill(self) -> int:
        """Ends what is left of the session, and returns the exit status of the arbiter."""
        if self._pidfd < 0:
            return -1
        # Not waited for yet, so the number still is this session's.
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self._pidfd)
        self._pidfd = -1
        return os.waitstatus_to_exitcode(status)

    def _clean_up(self) -> str:
        running.discard(self)
        if self._life >= 0:
            os.close(self._life)
            self._life = -1
        self._log = self.log
        shutil.rmtree(self._directory, ignore_errors=True)
        return self._log[-TAIL:]


def _fork(order: process.Order, log: int) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        for server in running:  # their ends of life are the test process's alone
            os.close(server._life)
        process.in_fork(order, log)
    return pid


def _spawn(order: process.Order, log: int) -> int:
    """A new interpreter, which has this one's module path."""
    try:
        text = pickle.dumps(tuple(order))
    except Exception as error:
        raise TypeError(
            f"settings of an application that is served by its name have to be picklable ({error}); "
            "a callable is served by a fork, which needs no pickles"
        ) from None
    started = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        pass_fds=(order.life,),
        start_new_session=True,
    )
    assert started.stdin is not None
    with suppress(BrokenPipeError), started.stdin:
        started.stdin.write(pickle.dumps(sys.path) + text)
    started.returncode = 0  # the pidfd is waited for, not this object
    return started.pid


_PROGRAM = """\
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from tricorn.testing.process import main
main()
"""


def _reachable(listener: str) -> str:
    """The address for a client: a server that listens on all addresses is reached at one."""
    return listener.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
