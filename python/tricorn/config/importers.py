"""Who imported a module: noted while the server reads its configuration, and asked if that was too early."""

from __future__ import annotations

import importlib.machinery
import os
import sys
from collections.abc import Iterator, Sequence
from types import FrameType, ModuleType

_SERVER = __name__.partition(".")[0]


def watch() -> None:
    """From now on; what has been noted stays."""
    if _observer not in sys.meta_path:
        sys.meta_path.insert(0, _observer)


def stop() -> None:
    """Forgets everything."""
    if _observer in sys.meta_path:
        sys.meta_path.remove(_observer)
    _observer.importers.clear()


def importer(module: str) -> str:
    """`conf.py:3`, or `conf.py:3 (through requests)`; empty if nobody saw the import."""
    return _observer.importers.get(module, "")


class _Observer:
    """Finds nothing; is asked for every module that is not loaded yet, while who wants it is on the stack."""

    def __init__(self) -> None:
        self.importers: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.importers:
            self.importers[fullname] = _describe(list(_importing(sys._getframe(1))))
        return None


def _importing(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames that import, from the nearest one to the one that the server has called."""
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name.partition(".")[0] == _SERVER:
            return
        if not name.startswith("importlib.") and not frame.f_code.co_filename.startswith("<frozen "):
            yield frame
        frame = frame.f_back


def _describe(frames: Sequence[FrameType]) -> str:
    if not frames:
        return "the server, for its settings"
    nearest, first = frames[0], frames[-1]
    place = f"{os.path.relpath(first.f_code.co_filename)}:{first.f_lineno}"
    through = nearest.f_globals.get("__name__")
    return place if nearest.f_code is first.f_code else f"{place} (through {through})"


_observer = _Observer()
