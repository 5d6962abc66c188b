"""The file that holds the arbiter's pid, for programs that send it signals.

It is stale, and may be replaced, when no process has that pid, or one that cannot be the writer: a process of
another user than the file's owner (the arbiter keeps its user; only workers give it up), a thread, or a zombie.
After a reboot or in a new container a pid of the past usually is another program's.
"""

from __future__ import annotations

from contextlib import suppress

from tricorn.errors import ConfigError
from tricorn.unpatched import os

MODE = 0o644


class Pidfile:
    def __init__(self, path: str, umask: int = 0) -> None:
        self.path = path
        self._mode = MODE & ~umask
        self.pid: int | None = None
        """The text that we wrote; None before `create`."""
        # Absolute, since the directory may change before the end.
        self._file = os.path.abspath(path)

    def create(self, pid: int) -> None:
        """Writes `pid`, or raises ConfigError: another server runs, or the file cannot be written."""
        self._write(self._file, self.path, pid)
        self.pid = pid

    def rename(self, path: str) -> None:
        """Moves to `path`: a successor takes the name that its predecessor has left.

        Raises ConfigError as `create` does, and then stays where it was.
        """
        if self.pid is None:
            raise ValueError("a pidfile that was not created cannot be renamed")
        file = os.path.abspath(path)
        if file == self._file:
            return
        self._write(file, path, self.pid)
        self.unlink()
        self.path, self._file = path, file

    def unlink(self) -> None:
        """Removes the file if it still holds our pid. Never fails: this is for the way out."""
        if self.pid is None:
            return
        with suppress(OSError):
            if _read(self._file) == self.pid:
                os.unlink(self._file)

    def _write(self, file: str, shown: str, pid: int) -> None:
        other = running(file, shown)
        if other is not None and other not in (pid, os.getpid()):
            raise ConfigError(f"Already running on PID {other} (or pid file '{shown}' is stale)")
        try:
            _replace(file, f"{pid}\n".encode(), self._mode)
        except OSError as error:
            raise ConfigError(f"Cannot write the pidfile {shown!r}: {error.strerror}.") from None


class Pidfiles:
    """The server's pidfile, if it has one, and that of the generation on trial, if it wants another one."""

    def __init__(self, path: str | None, umask: int = 0) -> None:
        """Raises ConfigError. `umask` is the setting: permissions that the file does not get."""
        self._current: Pidfile | None = None
        self._next: Pidfile | None = None
        if path:
            self._current = _created(path, umask)

    def prepare(self, path: str | None, umask: int = 0) -> None:
        """Writes what a new configuration asks for beside the file of before. Raises ConfigError."""
        if path and (self._current is None or self._current.path != path):
            self._next = _created(path, umask)

    def commit(self) -> None:
        if self._next is not None:
            self.unlink()
            self._current, self._next = self._next, None

    def roll_back(self) -> None:
        if self._next is not None:
            self._next.unlink()
            self._next = None

    def rename(self, path: str | None) -> None:
        """Raises ConfigError."""
        if self._current is not None and path:
            self._current.rename(path)

    def unlink(self) -> None:
        if self._current is not None:
            self._current.unlink()


def _created(path: str, umask: int) -> Pidfile:
    pidfile = Pidfile(path, umask)
    pidfile.create(os.getpid())
    return pidfile


def _replace(file: str, content: bytes, mode: int) -> None:
    """Readers find the old file or the new one, and never half of it."""
    directory, name = os.path.split(file)
    # This process alone writes it: EXCL also refuses a link that another user has laid there.
    temporary = os.path.join(directory, f".{name}.{os.urandom(6).hex()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            os.write(fd, content)
            os.fchmod(fd, mode)  # whatever the umask of the process: monitors run as other users
        finally:
            os.close(fd)
        os.rename(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


def _read(file: str) -> int | None:
    """The pid in `file`; None when there is no file or no pid in it.

    Workers may write to its directory: a FIFO that one has put there is not waited for.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        text = os.read(descriptor, 32).strip()
    finally:
        os.close(descriptor)
    # Neither 0 nor -1: to kill(2) they are groups of processes.
    return int(text) if text.isdigit() and 0 < int(text) <= _MOST_PIDS else None


def running(file: str, shown: str) -> int | None:
    """The pid in the file if its process runs, else None. ConfigError if the file, told as `shown`, cannot be read."""
    try:
        pid = _read(file)
        if pid is None:
            return None
        owner = os.stat(file).st_uid
    except FileNotFoundError:
        return None  # its owner has just left
    except OSError as error:
        raise ConfigError(f"Cannot read the pidfile {shown!r}: {error.strerror}.") from None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # there is one, of another user
    return pid if _may_have_written(pid, owner) else None


def _may_have_written(pid: int, owner: int) -> bool:
    """Whether the process can be the one that wrote a file of `owner`. In doubt (no /proc, or hidden) it can."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as stream:
            status = dict(line.split(":", 1) for line in stream if ":" in line)
        # real, effective, saved and file system uid
        user = int(status["Uid"].split()[1])
        is_process = int(status["Tgid"]) == pid
        is_zombie = status["State"].split()[0] == "Z"
    except (OSError, KeyError, ValueError, IndexError):
        return True
    return user == owner and is_process and not is_zombie


_MOST_PIDS = 2**22  # PID_MAX_LIMIT of Linux; elsewhere there are fewer
