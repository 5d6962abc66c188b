"""The application's own metrics: prometheus_client's multiprocess mode, without a recipe.

In that mode each process keeps what it counts in files of `PROMETHEUS_MULTIPROC_DIR`, which are named after its pid. So
files become more with every worker, gauges of dead workers stay, and each server needs a start script and a hook. Here

    fresh start      the directory is made, and the files of the last server are removed
    identity         files are named after the worker's slot, and a successor goes on counting in them
    end of a worker  the arbiter removes the files of gauges that are told of live processes only
    /metrics         the core merges the files (crates/tricorn-figures/src/metrics/application)

While a server and its successor (USR2) both live, their slots are the same numbers. So the successor's names end in `b`
if its predecessor's do not.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tricorn.metrics import identity
from tricorn.metrics.scoreboard import is_metric_file
from tricorn.unpatched import os

if TYPE_CHECKING:
    from tricorn.config.config import Config

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
OLD_VARIABLE = "prometheus_multiproc_dir"
KINDS = ("counter_", "gauge_", "histogram_", "summary_")
"""Prefixes of the library's file names."""
LIVE_GAUGES = ("all", "min", "max", "sum", "mostrecent")
MOST_BYTES = 64 << 20
"""Largest file, in bytes, that is inspected before reuse."""


class NotOurs(Exception):
    """Why the directory is left alone."""


class AppMetrics:
    """The directory, from the start of the arbiter to its end. A worker has a copy."""

    def __init__(self, path: str, descriptor: int, suffix: str) -> None:
        self.path = path
        self.descriptor = descriptor
        """The directory, opened; it carries the arbiter's lock."""
        self.suffix = suffix
        """Suffix of the file names used here."""
        self.identity = identity.Identity(f"0{suffix}")

    def adopt(self, slot: int, warn: Callable[[str], object]) -> None:
        """Makes the library count for this slot. Called in a worker, after the fork."""
        name = f"{slot}{self.suffix}"
        for warning in self._remove_broken(name):
            warn(warning)
        os.close(self.descriptor)  # the lock is the arbiter's alone
        self.descriptor = -1
        self.identity.become(name)
        identity.install(self.identity)

    def leave(self) -> None:
        """Gives the slot up. Called in a worker that becomes a mold: one of its forks may be of this slot."""
        self.identity.become(str(os.getpid()))
        identity.begin_files()

    def bury(self, slot: int) -> None:
        """Removes the live gauges of a slot whose worker has exited. Called in the arbiter."""
        self._remove_gauges(f"{slot}{self.suffix}")

    def bury_mold(self, pid: int) -> None:
        """The same of a mold that has ended."""
        self._remove_gauges(str(pid))

    def _remove_gauges(self, name: str) -> None:
        for mode in LIVE_GAUGES:
            with suppress(OSError):  # most processes have none
                os.unlink(f"gauge_live{mode}_{name}.db", dir_fd=self.descriptor)

    def _remove_broken(self, name: str) -> Iterator[str]:
        """The library refuses to open a file that was cut off in a write, and the worker would not boot."""
        for file in _files(self.descriptor):
            if file.endswith(f"_{name}.db") and not self._is_whole(file):
                with suppress(OSError):
                    os.unlink(file, dir_fd=self.descriptor)
                    yield f"{self.path}/{file} was corrupt and has been recreated; its counts are lost."

    def _is_whole(self, file: str) -> bool:
        try:
            opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self.descriptor)
        except OSError:
            return True  # not ours to judge
        with os.fdopen(opened, "rb") as stream:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                return True
            return is_metric_file(stream.read(MOST_BYTES))


def prepare(config: Config, environ: Mapping[str, str], *, fresh: bool) -> tuple[AppMetrics | None, list[str]]:
    """The directory, if there is one to be looked after, and warnings. `fresh`: this server succeeds none (USR2)."""
    named = environ.get(VARIABLE) or environ.get(OLD_VARIABLE)
    if not named or config.metrics_app == "off":
        return None, []
    path = os.path.abspath(named)
    try:
        descriptor = _open(path, config)
    except (OSError, NotOurs) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return None, [NOT_PREPARED.format(variable=VARIABLE, path=path, reason=reason)]
    locked = _lock(descriptor)
    if fresh and not locked:
        os.close(descriptor)
        reason = "another server is using it; two servers need a directory each"
        return None, [NOT_PREPARED.format(variable=VARIABLE, path=path, reason=reason)]
    if fresh:
        for file in list(_files(descriptor)):
            with suppress(OSError):  # a folder of that name; the merger leaves it out, too
                os.unlink(file, dir_fd=descriptor)
    metrics = AppMetrics(path, descriptor, "" if locked else "b")
    identity.install(metrics.identity)
    return metrics, []


def _open(path: str, config: Any) -> int:
    """The directory, which is made if there is none. OSError, or NotOurs."""
    made = not os.path.lexists(path)
    if made:
        os.makedirs(path, 0o755)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if made and os.geteuid() == 0:
            os.chown(descriptor, config.uid, config.gid)
        found = os.fstat(descriptor)
        # A directory that a container is given is root's, and open to all; a sticky one is everybody's.
        if found.st_uid not in (0, os.geteuid(), config.uid):
            raise NotOurs(f"it belongs to user {found.st_uid}")
        if found.st_mode & stat.S_ISVTX:
            raise NotOurs("it is a directory for the temporary files of all users; name one of its own")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lock(descriptor: int) -> bool:
    """False if another server has it; true also on a file system without locks."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _files(descriptor: int) -> Iterator[str]:
    """The library's files; nothing else in the directory is ours to touch."""
    with suppress(OSError):
        yield from (name for name in os.listdir(descriptor) if name.startswith(KINDS) and name.endswith(".db"))


NOT_PREPARED = (
    "{variable} = {path} is not managed: {reason}. /metrics leaves out the application's metrics, and files of ended "
    "workers are not removed."
)
