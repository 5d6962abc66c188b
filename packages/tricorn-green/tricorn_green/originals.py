"""Originals of patched names, and the modules that ask for them on purpose.

A library that needs a real thread-local or a real `sleep` asks for `gevent.monkey.get_original("threading", "local")`,
or for `eventlet.patcher.original("time").sleep`. Before the patch both return the very object that everybody else has.
So only the code of the module shows what was meant: it names one of these functions, and what it asks for.
"""

from __future__ import annotations

import builtins
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from tricorn.unpatched import _thread

Names = Mapping[str, Mapping[str, Any]]
"""Contents of modules: by their names, and the names in them."""

CALLABLE = (FunctionType, BuiltinFunctionType, type)


class Originals:
    """The functions and classes of the modules that will be patched."""

    def __init__(self, before: Names) -> None:
        self.names: dict[int, list[tuple[str, str]]] = {}
        """Holders by the object's identity: the modules, and its name there."""
        self._asked: dict[str, frozenset[str]] = {}
        common = {id(value) for value in vars(builtins).values()}
        for module, names in before.items():
            for name, value in names.items():
                if isinstance(value, CALLABLE) and id(value) not in common and value.__module__ in _HOMES:
                    self.names.setdefault(id(value), []).append((module, name))
        self._made: dict[int, list[tuple[str, str]]] = {
            id(kind): [name for factory in factories for name in self.names.get(id(factory), ())]
            for kind, factories in _FACTORIES.items()
        }

    def asks(self, module: str, value: object) -> bool:
        """Whether the module has asked for this original, or for what has made this object."""
        kind = id(type(value))
        names = self.names.get(id(value)) or self._made.get(kind) or self.names.get(kind) or []
        words = self._words(module) if names else frozenset[str]()
        return any(home in words and name in words for home, name in names)

    def _words(self, module: str) -> frozenset[str]:
        found = self._asked.get(module)
        if found is None:
            found = self._asked[module] = words_of_requests(module)
        return found


def words_of_requests(name: str) -> frozenset[str]:
    """The names of modules and of what is in them that a module may have asked for; none if it does not ask."""
    module = sys.modules.get(name)
    if module is None or not _mentions_requests(module):
        return frozenset()
    code = _code(module, name)
    if code is None:
        return frozenset()
    names, constants = set[str](), set[str]()
    for each in _codes(code):
        names.update(each.co_names)
        constants.update(_constants(each))
    if "get_original" in names:
        return frozenset(constants)
    if "original" in names and names & {"patcher", "eventlet.patcher"}:
        return frozenset(constants | names)  # it returns a module: what is taken from that is an attribute
    return frozenset()


def _mentions_requests(module: ModuleType) -> bool:
    """Whether the file of the module has one of these words, and is worth decoding."""
    for path in (getattr(module, "__cached__", None), getattr(module, "__file__", None)):
        try:
            text = Path(path).read_bytes() if path else b""
        except OSError:
            continue
        if text:
            return any(word in text for word in (b"get_original", b"patcher"))
    return hasattr(module, "__loader__")  # in an archive


def _code(module: ModuleType, name: str) -> CodeType | None:
    """None if it has none, or none that can be read any more."""
    try:
        get_code = getattr(module.__loader__, "get_code", None)
        if get_code is not None:
            code = get_code(name)
            return code if isinstance(code, CodeType) else None
        path = module.__file__
        return compile(Path(path).read_bytes(), path, "exec") if path else None
    except (AttributeError, ImportError, OSError, SyntaxError, ValueError):
        return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a module, and of all functions and classes in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _constants(code: CodeType) -> Iterator[str]:
    """The texts in it, but for the names of an import: `from threading import Lock` has a tuple of them."""
    import dis  # seldom needed

    last: object = None
    for instruction in dis.get_instructions(code):
        if instruction.opname != "IMPORT_NAME":
            yield from _texts(last)
        last = instruction.argval if instruction.opcode in dis.hasconst else None
    yield from _texts(last)


def _texts(constant: object) -> Iterator[str]:
    if isinstance(constant, str):
        yield constant
    elif isinstance(constant, tuple):
        for each in constant:
            yield from _texts(each)


_HOMES = {
    "os", "posix", "threading", "_thread", "_threading_local", "time", "socket", "_socket", "select", "selectors",
    "ssl", "_ssl", "subprocess", "_posixsubprocess", "signal", "_signal", "queue", "_queue",
}  # fmt: skip
"""Modules whose own names are patched. Names that they import from others (`os.Mapping`, `queue.deque`) are not."""
_FACTORIES: Mapping[type, tuple[object, ...]] = {
    type(_thread.allocate_lock()): (_thread.allocate_lock, threading.Lock),
    _thread.RLock: (_thread.RLock, threading.RLock),
}
"""The functions that make objects of these types."""
