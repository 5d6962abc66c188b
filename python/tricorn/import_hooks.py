"""Hooks on imports: one finder on `sys.meta_path` with a table, and changes of `sys.modules` that imports see whole.

    after(owner, hooks)     functions to be called when modules have been executed
    importing, keep         packages that a worker class brings along, and that are there for its sake alone
    take_away, put          a module under a name, and as the attribute of its package

The finder finds nothing itself: for a name of the table it asks the other finders, and wraps the loader until the
module has been executed. Every other import costs one look into the table. What stands for gunicorn's modules is a
finder of its own (`compat.finder`).
"""

from __future__ import annotations

import _thread
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader as _Loader
else:
    _Loader = object  # importlib.abc takes as long to import as a tenth of the server; nothing of it is needed

Hook = Callable[[ModuleType], None]

BROUGHT = ("geventwebsocket",)
"""Packages that are not installed, and that applications may import where a worker class brings them along.

They are there while the class is imported and in its workers, and nowhere else: python-engineio takes a server for one
with `wsgi.websocket` where `import geventwebsocket` works.
"""

_ROOT = os.path.dirname(__file__) + os.sep
_hooks: dict[str, dict[str, Hook]] = {}
"""Hooks by the name of the module, then by owner."""
_importing: list[str] = []
"""Names that are imported for the sake of a worker class; one import may ask for another."""


def after(owner: str, hooks: Mapping[str, Hook]) -> None:
    """Calls each hook when the module of its name has been executed, and at once if it has been.

    The hooks take the place of those that the owner had, in an arbiter before the fork or for another generation.
    """
    for known in _hooks.values():
        known.pop(owner, None)
    for name, hook in hooks.items():
        _hooks.setdefault(name, {})[owner] = hook
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
    for name, hook in hooks.items():
        if (module := sys.modules.get(name)) is not None:
            hook(module)


class Finder:
    """The finder that notices imports of the modules that have hooks."""

    def __init__(self) -> None:
        self._asking: set[tuple[int, str]] = set()
        """Questions by thread: finders that ask all finders themselves would come back to this one for ever."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _hooks.get(fullname):
            return None
        question = (_thread.get_ident(), fullname)
        if question in self._asking:
            return None
        self._asking.add(question)
        try:
            spec = self._ask(fullname, path, target)
        finally:
            self._asking.discard(question)
        # A package without code (a namespace), or a loader of the old kind: there is no moment to wait for.
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = Loader(spec.loader)
        return spec

    def _ask(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                spec: ModuleSpec | None = find(fullname, path, target)
                if spec is not None:
                    return spec
        return None


class Loader(_Loader):
    """Wraps another loader until the module is executed, which has its own loader again from then on."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        spec.loader = self._loader
        try:
            create = getattr(self._loader, "create_module", None)
            module: ModuleType | None = create(spec) if create is not None else None
        finally:
            spec.loader = self
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        name = spec.name if spec is not None else module.__name__
        if spec is not None and spec.loader is self:
            spec.loader = self._loader
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self._loader
        self._loader.exec_module(module)
        # A module may put another object into its place (`sys.modules[__name__] = ...`).
        module = sys.modules.get(name, module)
        for hook in list(_hooks.get(name, {}).values()):
            hook(module)

    def __getattr__(self, name: str) -> Any:
        """Data and sources, for code that asks the loader between finding and executing."""
        return getattr(self._loader, name)


@contextmanager
def importing(name: str) -> Iterator[None]:
    """Lets the import of a worker class find what the class brings along."""
    _importing.append(name)
    try:
        yield
    finally:
        _importing.pop()


def is_brought(package: str) -> bool:
    """Whether the name may be found just now, for the sake of a worker class."""
    return package in BROUGHT and (bool(_importing) or package in sys.modules)


def keep(packages: Collection[str]) -> None:
    """Imports the packages that a worker class brings, and forgets those of an earlier generation's."""
    for package in BROUGHT:
        # To look at the names of all modules is to write to their pages, which a worker then has to itself.
        if package in sys.modules and package not in packages and is_ours(sys.modules[package]):
            for name in [name for name in sys.modules if name.partition(".")[0] == package]:
                take_away(name)
    for package in packages:
        with importing(package):
            import_module(package)


def is_ours(module: object) -> bool:
    """Whether the module's file is one of this package's, whatever name it has."""
    return str(getattr(module, "__file__", None) or "").startswith(_ROOT)


def take_away(name: str) -> None:
    """Forgets a module, also in its package, where `from package import module` looks first."""
    module = sys.modules.pop(name)
    package, _, attribute = name.rpartition(".")
    if getattr(sys.modules.get(package), attribute, None) is module:
        delattr(sys.modules[package], attribute)


def put(name: str, module: ModuleType) -> None:
    """Has imports of the name find the module."""
    sys.modules[name] = module
    package, _, attribute = name.rpartition(".")
    if package in sys.modules:
        setattr(sys.modules[package], attribute, module)
