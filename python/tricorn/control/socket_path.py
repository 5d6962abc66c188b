"""Directories of control sockets for which no path is given: the server and its clients look in the same ones."""

from __future__ import annotations

import stat
from collections.abc import Mapping

from tricorn.record import Record
from tricorn.unpatched import os

SUFFIX = ".ctl"
IN_RUNTIME_DIRECTORY = "control"
"""The name of the socket in a directory that systemd has made for this service alone."""


class Directory(Record):
    path: str
    own: bool = False
    """The directory belongs to one service: the socket has a fixed name in it. Else it is called by the pid."""


def automatic(environ: Mapping[str, str], uid: int) -> list[Directory]:
    """Lists the directories that a server of this user tries, the best first. Nothing is looked up."""
    directories = []
    runtime = environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]  # systemd.exec(5): several are a list
    if os.path.isabs(runtime):
        directories.append(Directory(os.path.realpath(runtime), own=True))
    session = environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(session):
        directories.append(Directory(os.path.join(session, "tricorn")))
    if uid == 0:
        directories.append(Directory("/run/tricorn"))
    temporary = environ.get("TMPDIR", "")
    directories.append(Directory(os.path.join(temporary if os.path.isabs(temporary) else "/tmp", f"tricorn-{uid}")))
    return directories


def refusal(directory: str, uid: int) -> str | None:
    """Returns why this directory is not used; None if only root and this user can change what is in it."""
    try:
        found = os.lstat(directory)
    except OSError as error:
        return f"{directory}: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{directory} is no directory"
    if found.st_uid != uid:
        return f"{directory} belongs to user {found.st_uid}, not to {uid}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{directory} can be written by other users"
    return None
