"""The server's side of `tricorn.testing`: from a fork, or a new interpreter, to the exit status.

The process tells the test by datagrams of `NAME=value` lines: LISTENING when it listens, then systemd's READY=1.
It has SIGTERM sent to itself when the test process ends, in whatever way: the kernel sends it when the only write end
of a pipe is closed (fcntl(2), F_SETSIG). PR_SET_PDEATHSIG would not do, since it is about the thread that forked.
"""

from __future__ import annotations

import atexit
import fcntl
import io
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

LISTENING = b"LISTENING="
READY = b"READY=1"


class Order(NamedTuple):
    """Instructions for a server process: the application, and how to reach the test."""

    app: Any
    settings: Mapping[str, Any]
    notify: bytes
    """The address of the test's socket, in the abstract namespace."""
    life: int
    """The read end of the pipe that ends with the test process."""


def main() -> None:
    """Serves in a new interpreter. The order comes by stdin."""
    order = Order(*pickle.load(sys.stdin.buffer))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    _end_with(order.life)
    sys.exit(_serve(order))


def in_fork(order: Order, log: int) -> None:
    """Serves in a fork of the test process. Never returns into the test."""
    status = 1
    try:
        os.setsid()
        _leave_the_test(log)
        _end_with(order.life)
        status = _status(_serve, order)
    except BaseException:  # the test's own code stands above on the stack
        traceback.print_exc()
    finally:
        try:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


def _leave_the_test(log: int) -> None:
    """Undoes what is the test process's own: handlers of signals and of its exit, captured output."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    atexit._clear()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(nothing)
    sys.stdin = sys.__stdin__ = _text(0, "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _text(1, "w")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text(2, "w")  # type: ignore[misc]


def _text(descriptor: int, mode: Literal["r", "w"]) -> io.TextIOWrapper:
    return open(descriptor, mode, buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _end_with(life: int) -> None:
    """Has SIGTERM sent to this process when the write end of `life` is closed."""
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select((life,), (), (), 0)[0]:  # closed before the kernel was asked
        os.kill(os.getpid(), signal.SIGTERM)


def _serve(order: Order) -> int:
    from tricorn.cli.program import run

    os.environ["NOTIFY_SOCKET"] = "@" + os.fsdecode(order.notify[1:])
    settings = dict(order.settings)
    settings["when_ready"] = _announce(order.notify, settings.get("when_ready"))
    return run(order.app, read_environment=False, **settings)


def _announce(notify: bytes, hook: Callable[[Any], object] | None) -> Callable[[Any], None]:
    """The hook when_ready: tells the addresses, and calls the hook of the settings."""

    def when_ready(server: Any) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(LISTENING + ",".join(map(str, server.LISTENERS)).encode(), notify)
        if hook is not None:
            hook(server)

    return when_ready


def _status(function: Callable[[Order], int], order: Order) -> int:
    """The exit status that an interpreter would have."""
    try:
        return int(function(order))
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        sys.stderr.write(f"{error.code}\n")
        return 1
