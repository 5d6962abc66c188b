"""Binds the control socket: at the path that the configuration names, or in the first directory that works."""

from __future__ import annotations

import errno
import stat
from collections.abc import Mapping
from contextlib import suppress

from tricorn.control.socket_path import IN_RUNTIME_DIRECTORY, SUFFIX, Directory, automatic, refusal
from tricorn.log.types import Log
from tricorn.unpatched import os, socket, time

AUTO = "auto"

SUCCESSOR_SUFFIX = ".2"
"""Suffix of a successor's path, as of its pidfile, while the server that it replaces still holds the name."""

BACKLOG = 16

MOST_SWEPT = 100
"""Names that a start looks at."""

PROBE = 0.2
"""Seconds to find out whether a server listens on a socket that is there already."""
MOMENT = 0.05
"""Seconds after which a server that has just begun listens: bind(2) makes the name, and listen(2) follows."""


class BoundSocket:
    """A socket with its file. Only this server's own file is ever removed or renamed."""

    def __init__(self, sock: socket.socket, path: str) -> None:
        found = os.lstat(path)
        self.socket = sock
        self.path = path
        self.identity = (found.st_dev, found.st_ino)
        self.alias: str | None = None
        """A symbolic link with the name of the server."""
        self.later: str | None = None
        """The path that is ours when the server that we replace has ended."""

    def promote(self) -> None:
        """Takes the name that the predecessor has left."""
        if self.later is None:
            return
        later, self.later = self.later, None
        with suppress(OSError):
            if self._is_ours(self.path):
                os.rename(self.path, later)
                self.path = later

    def take_name_back(self) -> None:
        """The successor that had it is gone."""
        if self.alias is not None and not os.path.lexists(self.alias):
            with suppress(OSError):
                os.symlink(os.path.basename(self.path), self.alias)

    def remove(self) -> None:
        with suppress(OSError):
            if self.alias is not None and os.readlink(self.alias) == os.path.basename(self.path):
                os.unlink(self.alias)
        with suppress(OSError):
            if self._is_ours(self.path):
                os.unlink(self.path)

    def _is_ours(self, path: str) -> bool:
        found = os.lstat(path)
        return (found.st_dev, found.st_ino) == self.identity


def bind(
    wanted: str, mode: int, *, name: str | None, environ: Mapping[str, str], is_successor: bool, log: Log
) -> BoundSocket | None:
    """Returns the listening socket, or None where there can be none: a server does not end for lack of one."""
    if wanted == AUTO:
        return _automatic(mode, name, environ, is_successor, log)
    path = os.path.abspath(wanted)
    try:
        return _named(path, mode, is_successor)
    except OSError as error:
        log.warning("Cannot create the control socket %s; continuing without one: %s.", path, error.strerror or error)
        return None


def _automatic(
    mode: int, name: str | None, environ: Mapping[str, str], is_successor: bool, log: Log
) -> BoundSocket | None:
    reasons = []
    for directory in automatic(environ, os.geteuid()):
        try:
            bound = _in_directory(directory, mode, is_successor)
        except OSError as error:
            reasons.append(error.strerror or str(error))
            continue
        bound.alias = _link(bound, directory, name)
        log.debug("Control socket: %s", bound.path)
        return bound
    log.debug("No control socket: %s.", "; ".join(reasons))
    return None


def _in_directory(directory: Directory, mode: int, is_successor: bool) -> BoundSocket:
    if not directory.own:
        with suppress(FileExistsError):
            os.mkdir(directory.path, 0o700)
    reason = refusal(directory.path, os.geteuid())
    if reason is not None:
        raise OSError(errno.EPERM, reason)
    if directory.own:
        return _named(os.path.join(directory.path, IN_RUNTIME_DIRECTORY), mode, is_successor)
    _sweep(directory.path)
    return _bind(os.path.join(directory.path, f"{os.getpid()}{SUFFIX}"), mode)


def _sweep(directory: str) -> None:
    """Removes what servers that were killed have left: no other would ever take the name of their pid."""
    numbers = (entry.removesuffix(SUFFIX) for entry in os.listdir(directory)[:MOST_SWEPT] if entry.endswith(SUFFIX))
    for pid in (int(number) for number in numbers if number.isascii() and number.isdigit()):
        if pid and not _is_process(pid):
            # One of another container may share the directory, so that a server is gone only if none listens.
            with suppress(OSError):
                _remove_stale(os.path.join(directory, f"{pid}{SUFFIX}"), looks=1)


def _is_process(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # it is another user's
    return True


def _named(path: str, mode: int, is_successor: bool) -> BoundSocket:
    if not is_successor:
        return _bind(path, mode)
    bound = _bind(path + SUCCESSOR_SUFFIX, mode)
    bound.later = path
    return bound


def _bind(path: str, mode: int) -> BoundSocket:
    _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The mode is right from the first moment: a chmod(2) after bind(2) would come late.
        before = os.umask(0o777 & ~mode)
        try:
            sock.bind(path)
        finally:
            os.umask(before)
        sock.setblocking(False)
        sock.listen(BACKLOG)
        return BoundSocket(sock, path)
    except BaseException:
        sock.close()
        raise


def _remove_stale(path: str, looks: int = 2) -> None:
    """Removes the socket of a server that was killed. OSError if there is anything else.

    A second look finds the server that had just begun at the first one. With many names there is no time for it.
    """
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, f"{path} exists and is no socket")
    except FileNotFoundError:
        return
    for look in range(looks):
        if look:
            time.sleep(MOMENT)
        if not _is_refused(path):
            raise OSError(errno.EADDRINUSE, "another server listens on it")
    os.unlink(path)


def _is_refused(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
    return False


def _link(bound: BoundSocket, directory: Directory, name: str | None) -> str | None:
    """NAME.ctl beside the socket: of several servers with one name it is the newest."""
    if not name or "/" in name or name.startswith(".") or name.isdigit():
        return None
    alias = os.path.join(directory.path, name + SUFFIX)
    temporary = f"{alias}.{os.getpid()}"
    try:
        os.symlink(os.path.basename(bound.path), temporary)
        os.rename(temporary, alias)
    except OSError:
        return None
    return alias
