"""Errors for names that gunicorn's modules have and ours do not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn


def refuse(module: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of the module of this name."""

    def look_up(name: str) -> NoReturn:
        if name.startswith("__"):  # the interpreter, or `inspect`
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise _missing(module, name)

    return look_up


def _missing(module: str, name: str) -> Exception:
    """Returns the exception for `module.name`, or rather for `from module import name`.

    The interpreter turns an AttributeError under `from … import` into "cannot import name", and our sentence would be
    lost; an ImportError it leaves alone. `hasattr` needs the AttributeError.
    """
    text = not_served(f"{module}.{name}")
    frame = sys._getframe(2)
    import opcode  # only for a mistake

    instruction = frame.f_code.co_code[frame.f_lasti] if frame.f_lasti >= 0 else -1
    if instruction == opcode.opmap["IMPORT_FROM"]:
        return ImportError(text, name=module)
    return AttributeError(text, name=name, obj=sys.modules.get(module))


def not_served(name: str) -> str:
    package = name.partition(".")[0]
    return (
        f"tricorn does not serve {name}: of {package}'s names it has those that configuration files, worker classes "
        f"and programs use. What needs the rest needs {package} installed."
    )
