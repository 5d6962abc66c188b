"""The finder on `sys.meta_path` that answers `import gunicorn…` with the files of the folders beside this one."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from tricorn import import_hooks
from tricorn.compat.absent import not_served
from tricorn.import_hooks import is_ours

STARTED = ("gunicorn", "uvicorn")
"""Packages by which programs start a server."""
TOPS = (*STARTED, "uvicorn_worker")
"""Packages that are served where they are not installed."""
ROOT = os.path.dirname(__file__)

OURS = frozenset(
    (
        "gunicorn.app.base",
        "gunicorn.app.wsgiapp",
        "gunicorn.arbiter",
        "gunicorn.config",
        "gunicorn.glogging",
        "gunicorn.workers.base",
        "gunicorn.workers.base_async",
        "gunicorn.workers.gasgi",
        "gunicorn.workers.geventlet",
        "gunicorn.workers.ggevent",
        "gunicorn.workers.gthread",
        "gunicorn.workers.gtornado",
        "gunicorn.workers.sync",
        "aiohttp.worker",
        "geventwebsocket.gunicorn.workers",
        "uvicorn.workers",
        "uvicorn_worker",
        "uvicorn_worker._workers",
    )
)
"""Served even if their packages are installed: this server uses what is derived from these classes."""


def install(*, programs: bool = False) -> None:
    """Puts the finder in its place, once; with `programs` names of gunicorn and uvicorn are ours, installed or not."""
    finder = next((each for each in sys.meta_path if isinstance(each, Finder)), None)
    if finder is None:
        finder = Finder()
        sys.meta_path.insert(_first_of_paths(), finder)
        _forget(OURS)
    if programs and not finder.is_everything_ours:
        finder.is_everything_ours = True
        _forget([name for name in sys.modules if name.partition(".")[0] in STARTED])


def _first_of_paths() -> int:
    """Before what looks along `sys.path`, and behind finders of APM agents, which watch imports and find nothing."""
    return next((at for at, each in enumerate(sys.meta_path) if each is PathFinder), len(sys.meta_path))


def _forget(names: Iterable[str]) -> None:
    """Lets modules of another gunicorn be imported anew."""
    for name in names:
        if name in sys.modules and not is_ours(sys.modules[name]):
            import_hooks.take_away(name)


class Finder:
    is_everything_ours = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in OURS and (not _is_served(fullname.partition(".")[0]) or self._is_theirs(fullname)):
            return None
        place = os.path.join(ROOT, *fullname.split("."))
        package = os.path.join(place, "__init__.py")
        if os.path.exists(package):
            places = [place, *self._behind(fullname)] if fullname == "uvicorn" else [place]
            return importlib.util.spec_from_file_location(fullname, package, submodule_search_locations=places)
        if os.path.exists(place + ".py"):
            return importlib.util.spec_from_file_location(fullname, place + ".py")
        if path is not None and not all(each.startswith(ROOT + os.sep) for each in path):
            return None  # the installed package has it, or none
        raise ModuleNotFoundError(not_served(fullname), name=fullname)

    def _is_theirs(self, fullname: str) -> bool:
        """Whether gunicorn or uvicorn itself is installed, or imported already."""
        top = fullname.partition(".")[0]
        if top in STARTED and self.is_everything_ours:
            return False
        loaded = sys.modules.get(top)
        if loaded is not None:
            return not is_ours(loaded)
        return self._installed(top) is not None

    def _installed(self, top: str) -> ModuleSpec | None:
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :]
        found = (finder.find_spec(top, None) for finder in behind)
        return next((spec for spec in found if spec is not None), None)

    def _behind(self, top: str) -> Sequence[str]:
        """The folders of the installed package, whose other modules (uvicorn's middlewares) applications use."""
        spec = self._installed(top)
        return () if spec is None else spec.submodule_search_locations or ()


def _is_served(top: str) -> bool:
    return top in TOPS or import_hooks.is_brought(top)
