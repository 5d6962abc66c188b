"""A finder on `sys.meta_path` that notices the import of some modules, and what follows the import.

It finds nothing itself: for a name that it waits for it asks the other finders, and puts itself around the loader until
the module has been executed. For every other module it costs one look into a table.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader as _Loader
else:
    _Loader = object  # importlib.abc takes as long to import as a tenth of the server; nothing of it is needed


class Finder:
    """A subclass says what follows."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names
        self._asking: set[tuple[int, str]] = set()
        """By thread: finders that ask all finders themselves would come back to this one for ever."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.names:
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
            spec.loader = Loader(spec.loader, self)
        return spec

    def _ask(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                spec: ModuleSpec | None = find(fullname, path, target)
                if spec is not None:
                    return spec
        return None

    def apply_to_imported(self) -> None:
        """For what was imported before there was a finder."""
        for name in self.names:
            module = sys.modules.get(name)
            if module is not None:
                self.apply(module, name)

    def apply(self, module: ModuleType, name: str) -> None:
        """The module of this name has been executed."""
        raise NotImplementedError


class Loader(_Loader):
    """Around another loader, until the module is executed. A module that is executed has its own loader again."""

    def __init__(self, loader: Any, finder: Finder) -> None:
        self._loader = loader
        self._finder = finder

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
        self._finder.apply(sys.modules.get(name, module), name)

    def __getattr__(self, name: str) -> Any:
        """Data and sources, for code that asks the loader between finding and executing."""
        return getattr(self._loader, name)
