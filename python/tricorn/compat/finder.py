"""The finder on `sys.meta_path` that answers `import gunicorn…`, and the modules it makes from the table."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tricorn.compat.table import ALWAYS_OURS, MODULES, PACKAGES, Value

if TYPE_CHECKING:
    from importlib.abc import Loader as _Loader
else:
    _Loader = object  # importlib.abc takes as long to import as a tenth of the server; nothing of it is needed

TOP = "gunicorn"


def install() -> None:
    """Puts the finder first in line; once. A gunicorn that is installed stays what it is, except for its logger."""
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    for name in ALWAYS_OURS:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Finder())


class Finder:
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != TOP:
            return None
        if fullname in ALWAYS_OURS or (fullname in MODULES and not self._is_theirs(fullname)):
            return importlib.machinery.ModuleSpec(fullname, Loader(), is_package=fullname in PACKAGES)
        if fullname != TOP and not self._is_theirs(fullname):
            raise ModuleNotFoundError(_not_served(fullname), name=fullname)
        return None

    def _is_theirs(self, fullname: str) -> bool:
        """Whether gunicorn itself is installed, or imported already."""
        loaded = sys.modules.get(TOP)
        if loaded is not None:
            return not isinstance(getattr(loaded.__spec__, "loader", None), Loader)
        return any(finder.find_spec(TOP, None) for finder in sys.meta_path if finder is not self)


class Loader(_Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """The usual module will do."""

    def exec_module(self, module: ModuleType) -> None:
        table = MODULES[module.__name__]

        def look_up(name: str) -> Any:
            try:
                entry = table[name]
            except KeyError:
                raise _missing(module.__name__, name) from None
            found = entry.value if isinstance(entry, Value) else _resolve(entry)
            setattr(module, name, found)
            return found

        module.__doc__ = f"The part of {module.__name__} that tricorn serves; see tricorn.compat."
        vars(module).update(
            {name: entry.value for name, entry in table.items() if isinstance(entry, Value)},
            __getattr__=look_up,
            __dir__=lambda: sorted({*vars(module), *table}),
        )


def _resolve(entry: str) -> Any:
    module, _, name = entry.partition(":")
    return getattr(importlib.import_module(module), name)


def _missing(module: str, name: str) -> Exception:
    """What `module.name` raises, or rather `from module import name`.

    The interpreter turns an AttributeError under `from … import` into "cannot import name", and our sentence would be
    lost; an ImportError it leaves alone. `hasattr` needs the AttributeError.
    """
    text = _not_served(f"{module}.{name}")
    frame = sys._getframe(2)
    import opcode  # only for a mistake

    instruction = frame.f_code.co_code[frame.f_lasti] if frame.f_lasti >= 0 else -1
    if instruction == opcode.opmap["IMPORT_FROM"]:
        return ImportError(text, name=module)
    return AttributeError(text, name=name, obj=sys.modules.get(module))


def _not_served(name: str) -> str:
    return (
        f"tricorn does not serve {name}: of gunicorn's names it has those that configuration files use. "
        "What needs the rest needs gunicorn installed."
    )
