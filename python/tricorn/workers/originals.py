"""gunicorn's own modules, where it is installed, for classes that cannot do with those of this server.

Under gunicorn's names stand the classes here (`compat.finder`). Within `in_place()` they give way, in this process, to
those of the package that is installed; afterwards they are back, and what was imported meanwhile keeps what it has.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from tricorn import import_hooks
from tricorn.config import foreign
from tricorn.config.config import Config
from tricorn.config.registry import SETTINGS
from tricorn.errors import ConfigError

TOP = "gunicorn"
COMPAT = "tricorn.compat."
"""Package of the finder that stands for gunicorn, and of its modules."""

_kept: dict[str, ModuleType] = {}
"""gunicorn's own modules as far as they were imported, from one time to the next."""


def are_there() -> bool:
    """Whether gunicorn is installed, and its name is not this server's as a whole (`tricorn exec`)."""
    if any(getattr(finder, "is_everything_ours", False) for finder in _finders()):
        return False
    return PathFinder.find_spec(TOP) is not None


@contextmanager
def in_place() -> Iterator[None]:
    """gunicorn's own modules are found under their names."""
    finders = _finders()
    others = [finder for finder in sys.meta_path if finder not in finders]
    at = {id(finder): sys.meta_path.index(finder) for finder in finders}
    ours = {name: module for name, module in sys.modules.items() if _stands_in(module)}
    for name in ours:
        import_hooks.take_away(name)
    for name, module in _kept.items():
        import_hooks.put(name, module)
    sys.meta_path[:] = others
    try:
        yield
    finally:
        for finder in finders:
            sys.meta_path.insert(at[id(finder)], finder)
        for name, module in ours.items():
            if (theirs := sys.modules.get(name)) is not None:
                _kept[name] = theirs
            import_hooks.put(name, module)
        # What is theirs and was never ours stays: it is found there in any case.


def _finders() -> list[Any]:
    return [finder for finder in sys.meta_path if type(finder).__module__.startswith(COMPAT)]


def _stands_in(module: ModuleType) -> bool:
    """Whether it is a module of ours under another package's name."""
    return import_hooks.is_ours(module) and module.__name__.partition(".")[0] != "tricorn"


def configuration(config: Config) -> Any:
    """Makes the `cfg` of gunicorn's classes: its own `Config` with the values set here, and ours for what it lacks."""
    made = _kind()(config)
    for setting in SETTINGS:
        name = setting.name
        if name not in made.settings or name in _NOT_THEIRS or config.is_default(name):
            continue
        try:
            made.set(name, foreign.as_gunicorn(name, config.value(name)))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"The gunicorn worker class does not accept {name}: {error}.") from None
    return made


@cache
def _kind() -> Any:
    with in_place():
        theirs: Any = import_module(f"{TOP}.config").Config

    class Both(theirs):  # type: ignore[misc]
        def __init__(self, ours: Config) -> None:
            object.__setattr__(self, "_ours", ours)
            super().__init__()

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name.startswith("_") or name == "settings":
                    raise
                return getattr(self._ours, name)

    return Both


_NOT_THEIRS = frozenset(
    ("config", "bind", "worker_class", "logger_class", "user", "group", "initgroups", "raw_env", "chdir", "reload")
)
"""Settings that this server handles before a worker's class runs."""
