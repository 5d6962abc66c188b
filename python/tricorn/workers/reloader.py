"""`--reload`: a thread that notices when a file of the application changes.

Watched are the source files of all imported modules, those that are imported later too, and the extra files. What
decides is always a look at the files themselves; an engine only says when to look:

    poll      four times a second
    inotify   when the kernel says so, through watchfiles (the extra `tricorn[reload]`)
    auto      inotify where watchfiles is installed, else poll
"""

from __future__ import annotations

import glob
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import PurePath
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from tricorn.errors import ConfigError
from tricorn.unpatched import os
from tricorn.workers import real_threads
from tricorn.workers.real_threads import Event

if TYPE_CHECKING:
    from tricorn.config.config import Config

INTERVAL = 1.0
"""Seconds between two looks of `inotify` for what is new to watch."""
POLL = 0.25
"""Seconds between two looks of `poll`."""
QUIET = 0.1
"""Seconds without a change after which a burst of them is over: a checkout writes many files."""
LONGEST_BURST = 2.0
"""Seconds after which a burst is reported although it goes on."""


def check(engine: str) -> None:
    """Raises ConfigError if `engine`, one of the setting's words, is not to be had here."""
    if engine in ("inotify", "watchfiles") and not _has_watchfiles():
        raise ConfigError(
            f"reload_engine {engine} needs watchfiles, which is not installed: pip install 'tricorn[reload]', "
            "or use reload_engine poll."
        )


def note(config: Config) -> str:
    """Returns a note for the log if changes are not noticed at once."""
    if not config.reload or config.reload_engine != "auto" or _has_watchfiles():
        return ""
    remedy = "with `pip install 'tricorn[reload]'` the kernel tells of changes"
    return f"Reload looks at all files every {POLL:g} s; {remedy}."


def extra_files(config: Config) -> list[str]:
    """Paths and patterns of what is watched besides modules."""
    names = ("*.py", *config.reload_includes)
    directories = config.reload_dirs or ((os.curdir,) if config.reload_includes else ())
    found = [os.path.join(glob.escape(each), "**", name) for each in directories for name in names]
    return [*config.reload_extra_files, *found]


def start(
    extra_files: Iterable[str], engine: str, report: Callable[[str], object], excludes: Iterable[str] = ()
) -> Reloader:
    """Starts to watch. ConfigError if the engine is missing.

    `extra_files` are paths and glob patterns; `excludes` are patterns of what is not watched. `report` is called in the
    thread, once for a burst of changes, with the path of the first. To be called before the application is loaded, and
    `note_modules` of what is returned when it is: a module that is written again before it was looked at for the first
    time would pass for unchanged.
    """
    check(engine)
    by_events = engine != "poll" and _has_watchfiles()
    files = Files(extra_files, excludes)
    files.look()  # from here on, and not from when the thread gets its turn
    reloader = Reloader(files, report)
    if by_events:
        _load_watchfiles()
    real_threads.start(reloader.run, by_events)
    return reloader


class Reloader:
    """A running reloader."""

    def __init__(self, files: Files, report: Callable[[str], object]) -> None:
        self._files = files
        self._report = report
        self._over = Event()

    def add(self, path: str) -> None:
        """Watches one more file: one that could not be imported, because of a syntax error in it."""
        self._files.add(path)

    def note_modules(self) -> None:
        """Looks at the modules that have been imported since, now and not within the next second."""
        self._files.note_modules()

    def stop(self) -> None:
        """Ends the watch soon; nothing more is reported."""
        self._over.set()

    def run(self, by_events: bool) -> None:
        looks = _looks_by_events(self._files, self._over) if by_events else _looks_by_time(self._over)
        for found in looks:
            changed = self._files.look() or found
            if changed is not None and self._burst_is_over():
                self._report(changed)

    def _burst_is_over(self) -> bool:
        """Waits until the files rest. False when the watch has ended."""
        for _ in range(round(LONGEST_BURST / QUIET)):
            if self._over.wait(QUIET):
                return False
            if self._files.look() is None:
                break
        return True


class Files:
    """The files that are watched, and how each of them looked last."""

    def __init__(self, extra_files: Iterable[str], excludes: Iterable[str] = ()) -> None:
        self._excludes = tuple(excludes)
        extra = [os.path.abspath(path) for path in extra_files]
        self._extra = {path: None for path in extra if not glob.has_magic(path)}
        self._patterns = [path for path in extra if glob.has_magic(path)]
        self._looks: dict[str, _Look | None] = {}
        self._first = True
        self._names: set[str] = set()

    def add(self, path: str) -> None:
        path = os.path.abspath(path)
        # As it is now, and not as it is at the next look, which may come after it was mended.
        self._notice(path)
        self._extra[path] = None

    def note_modules(self) -> None:
        for path in _sources():
            self._notice(path)

    def look(self, only_new: bool = False) -> str | None:
        """The first file that has changed since the last look, or has come to match a pattern; None if none has.

        `only_new`: without looking again at the files that are known.
        """
        changed = None
        files = self._all()
        for path, by_pattern in files.items():
            if self._notice(path):
                if by_pattern and not self._first:
                    changed = changed or path
            elif not only_new:
                found = _look(path)
                # One that is gone may be on its way: some editors remove a file before they write the new one.
                if found is not None and found != self._looks[path]:
                    self._looks[path] = found
                    changed = changed or path
        self._first = False
        return changed

    def _notice(self, path: str) -> bool:
        """Whether the file is a new one. Called by two threads: it adds, and never removes."""
        if path in self._looks:
            return False
        self._names.add(os.path.basename(path))
        self._looks.setdefault(path, _look(path))
        return True

    def directories(self) -> dict[str, tuple[int, int]]:
        """Returns the directories whose events concern the files, each with its identity (device and inode)."""
        names = set()
        for path in tuple(self._looks):
            names.add(os.path.dirname(path))
            if os.path.islink(path):
                names.add(os.path.dirname(os.path.realpath(path)))
        found = {}
        for name in names:
            try:
                status = os.stat(name)
            except OSError:
                continue
            found[name] = (status.st_dev, status.st_ino)
        return found

    def concerns(self, path: str) -> bool:
        """Whether an event at `path` is reason enough to look: in a watched directory a log may be written, too."""
        return bool(self._patterns) or os.path.basename(path) in self._names

    def _all(self) -> dict[str, bool]:
        """Paths, and whether a pattern found them."""
        files = dict.fromkeys(_sources(), False)
        files.update(dict.fromkeys(tuple(self._extra), False))
        for pattern in self._patterns:
            for path in sorted(glob.glob(pattern, recursive=True)):
                if not os.path.isdir(path):
                    files.setdefault(path, True)
        if self._excludes:
            return {path: by_pattern for path, by_pattern in files.items() if not _is_excluded(path, self._excludes)}
        return files


def _is_excluded(path: str, patterns: Iterable[str]) -> bool:
    below = os.path.relpath(path)
    names = (os.path.basename(path),) if below.startswith(os.pardir) else below.split(os.sep)
    return any(
        PurePath(path).match(pattern)
        or any(fnmatch(name, pattern) for name in names)
        or path.startswith(os.path.join(os.path.abspath(pattern), ""))
        for pattern in patterns
    )


class _Look(NamedTuple):
    """Fingerprint of a file, to notice changes.

    Not its inode: FUSE may number a file anew whenever it likes, and a server that reloads for ever is worse than
    one that misses a new file of the same size and date.
    """

    modified: int
    size: int


def _look(path: str) -> _Look | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return _Look(found.st_mtime_ns, found.st_size)


def _sources() -> Iterator[str]:
    """The files that the imported modules were made of."""
    for module in tuple(sys.modules.values()):
        if not isinstance(module, ModuleType):
            continue
        # Past a module's own __getattr__, which may import, or fail in any manner.
        try:
            path = object.__getattribute__(module, "__dict__").get("__file__")
        except AttributeError:  # cffi's libraries call themselves modules, and are none
            continue
        if isinstance(path, str) and path:
            yield _source(path if path[0] == "/" else os.path.abspath(path))


def _source(path: str) -> str:
    """The source of a compiled file, if there is one."""
    return path[:-1] if path.endswith(".pyc") and os.path.exists(path[:-1]) else path


def _looks_by_time(over: Event) -> Iterator[None]:
    while not over.wait(POLL):
        yield


def _looks_by_events(files: Files, over: Event) -> Iterator[str | None]:
    """Yields when a look is due, or a change that it has found itself.

    A watch is for certain directories: when there are others, or new ones under an old name, it begins anew.
    """
    while not over.is_set():
        directories = files.directories()
        began = False
        try:
            with closing(_events(files, directories, over)) as events:
                for event in events:
                    found = files.look(only_new=True)
                    # The first time also without an event: for what happened before the watch had begun.
                    if event or found or not began:
                        yield found
                    began = True
                    if files.directories() != directories:
                        yield None
                        break
        except (OSError, RuntimeError):
            # No more watches are to be had (fs.inotify.max_user_watches), or a directory went away right now.
            if not over.wait(INTERVAL):
                yield None


def _events(files: Files, directories: Iterable[str], over: Event) -> Generator[bool, None, None]:
    """True: something happened to a file. False: an INTERVAL has gone by."""
    import watchfiles

    changes = watchfiles.watch(
        *directories,
        recursive=False,
        watch_filter=lambda _, path: files.concerns(path),
        debounce=round(QUIET * 1000),
        step=round(QUIET * 1000 / 2),
        rust_timeout=round(INTERVAL * 1000),
        yield_on_timeout=True,
        stop_event=over,
        raise_interrupt=False,
    )
    with closing(changes):
        for each in changes:
            yield bool(each)


def _load_watchfiles() -> None:
    """Before the thread needs it, which must neither import nor log: locks of either may be a greenlet's."""
    import watchfiles.main

    watchfiles.main.logger.disabled = True


def _has_watchfiles() -> bool:
    return find_spec("watchfiles") is not None
