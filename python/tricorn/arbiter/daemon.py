"""Leaving the terminal: `--daemon`."""

from __future__ import annotations

import sys

from tricorn.errors import ConfigError
from tricorn.unpatched import os

UMASK = 0o022


def daemonize(*, keep_stdio: bool) -> None:
    """Goes on in the background, as the leader of nothing; the process that was started exits with 0.

    stdin becomes /dev/null, and so do stdout and stderr. With `keep_stdio` those two stay where the shell sent
    them unless that is a terminal, as gunicorn does: `tricorn -D -R app > file`. All other descriptors stay open,
    listening sockets and log files among them. The pid is another one afterwards.

    A successor (USR2) is in the background already and must not come here.
    """
    # What stands in a buffer would go to /dev/null.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    _leave_parent()
    os.setsid()
    # A leader of a session that opens a terminal is bound to it: only one that leads nothing is safe.
    _leave_parent()
    os.umask(UMASK)
    _redirect(keep_stdio)


def _leave_parent() -> None:
    try:
        pid = os.fork()
    except OSError as error:
        raise ConfigError(f"Cannot run in the background: fork failed: {error.strerror}.") from None
    if pid:
        os._exit(0)


def _redirect(keep_stdio: bool) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        if fd == 0 or not keep_stdio or os.isatty(fd) or _is_closed(fd):
            os.dup2(null, fd)
            os.set_inheritable(fd, True)  # dup2 onto itself changes nothing
    if null > 2:
        os.close(null)


def _is_closed(fd: int) -> bool:
    """A closed one is the next that is opened, and a socket would get what the application prints."""
    try:
        os.fstat(fd)
    except OSError:
        return True
    return False
