"""Which user and group workers run as: `--user`, `--group`, `--initgroups`.

The order is group, other groups, user: who has given up root cannot choose groups any more.
"""

from __future__ import annotations

import os
import pwd

from tricorn.errors import ConfigError

_CAP_SETGID, _CAP_SETUID = 6, 7


def check(uid: int, gid: int, *, initgroups: bool) -> None:
    """Raises ConfigError if `drop` with the same arguments would. For the arbiter, which can say so at once."""
    if _is_current(uid, gid):
        return
    if (gid != os.getegid() or initgroups) and not _capable(_CAP_SETGID):
        raise _refused("group", gid)
    if uid != os.geteuid() and not _capable(_CAP_SETUID):
        raise _refused("user", uid)
    if initgroups:
        _name(uid)


def drop(uid: int, gid: int, *, initgroups: bool) -> None:
    """Becomes `uid` and `gid`, for good; does nothing when the process runs as them already.

    The groups besides `gid` are those of the user with `initgroups`. Without it they are those the process was
    given, as with gunicorn, but not group 0: a process that has left root has no use for root's files.
    A hook that has given up root already (`post_fork`) is left alone where no user is set, as with gunicorn.
    Raises ConfigError when that is not permitted, or `initgroups` finds no user name.
    """
    if _is_current(uid, gid) or (uid == 0 and os.geteuid() != 0):
        return
    try:
        if gid != os.getegid():
            os.setgid(gid)
        if initgroups:
            os.initgroups(_name(uid), gid)
        elif uid != 0 and 0 in os.getgroups():
            os.setgroups([group for group in os.getgroups() if group != 0])
    except OSError as error:
        raise _refused("group", gid, error) from None
    try:
        if uid != os.geteuid():
            os.setuid(uid)
    except OSError as error:
        raise _refused("user", uid, error) from None


def keep_call_file(uid: int, gid: int) -> int:
    """A descriptor that tells the system calls of the calling thread; -1 if `drop` changes nothing, or there is none.

    A process that has changed its user is not dumpable (prctl(2), PR_SET_DUMPABLE), and stays so: other processes of
    that user may not read its memory, in which there may be what only root may read. It may not open its own file of
    this kind either. What was opened before can be read for good, by this process only.
    """
    if _is_current(uid, gid):
        return -1
    try:
        return os.open("/proc/thread-self/syscall", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1  # the doctor says what it cannot tell


def chown(path: str, uid: int, gid: int) -> None:
    """Gives the file to the user and the group of the workers; ConfigError when that is not permitted."""
    try:
        found = os.stat(path)
        if (found.st_uid, found.st_gid) != (uid, gid):
            os.chown(path, uid, gid)
    except OSError as error:
        reason = "only root can do that" if isinstance(error, PermissionError) else error.strerror
        raise ConfigError(f"Cannot change the owner of {path!r} to uid {uid}, gid {gid}: {reason}.") from None


def _is_current(uid: int, gid: int) -> bool:
    return (uid, gid) == (os.geteuid(), os.getegid())


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        raise ConfigError(
            f"initgroups requires a user with a name, but uid {uid} has none. Add the user, or remove initgroups."
        ) from None


def _refused(what: str, number: int, error: OSError | None = None) -> ConfigError:
    if error is not None and not isinstance(error, PermissionError):
        reason = error.strerror or str(error)  # e.g. an id that the container's user namespace does not have
    elif os.geteuid() == 0:
        capability = "CAP_SETUID" if what == "user" else "CAP_SETGID"
        reason = f"the capability {capability} is missing here"
    else:
        reason = f"only root can run workers as another {what} than its own; leave --{what} out, or start as root"
    return ConfigError(f"The workers' {what} cannot be {number}: {reason}.")


def _capable(capability: int) -> bool:
    """Whether the process has a capability: a container's root may lack it, another user may have it."""
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line.startswith("CapEff:"):
                    return bool(int(line.split()[1], 16) >> capability & 1)
    except OSError:
        pass
    return os.geteuid() == 0
