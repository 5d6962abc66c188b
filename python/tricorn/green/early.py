"""Modules that were imported before the standard library was patched, and what they keep of it.

A module that says `from time import sleep`, or makes a lock while it is imported, keeps the original ones after the
patch. `mend` goes through everything that such modules own (their names, classes, functions, objects) and puts what is
patched in the place of what is not:

    a name, an attribute, an item, a default, a closure     rebound
    a lock that is free, a thread-local, an empty queue     a new one of the patched kind, the same for all who share it
    a method of such a lock (conditions have some)          that of the new one
    an SSL context, a class of them                         works with the patched sockets
    a class that inherits from an original socket, a held lock, a connected socket, …: named in what it returns

Why not patch first? The configuration file is executed by the arbiter, whose threads have to be real: a hook that
serves metrics or runs a scheduler in a thread there would have a greenlet that never gets its turn.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import logging
import sys
import threading
from _queue import SimpleQueue
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from tricorn.unpatched import _thread, socket

PATCHED = (
    "os", "threading", "_thread", "_threading_local", "time", "socket", "select", "selectors", "ssl", "subprocess",
    "signal", "queue",
)  # fmt: skip
"""The modules that the libraries change."""

Names = Mapping[str, Mapping[str, Any]]
"""What was in each of these modules."""

Put = Callable[[Any], object]
"""Puts another object into a place."""


def remember() -> Names:
    """To be called before the patch; for `mend`."""
    return {name: dict(vars(sys.modules[name])) for name in PATCHED if name in sys.modules}


def mend(before: Names) -> Mapping[str, list[str]]:
    """To be called after the patch. Returns what cannot be mended, in words, by module."""
    _mend_contexts(before.get("ssl", {}).get("SSLContext"))
    for name in _CHOOSE_ONCE:
        if name in sys.modules:
            importlib.reload(sys.modules[name])
    mender = _Mender(before)
    for name, module in list(sys.modules.items()):
        if issubclass(type(module), ModuleType) and _is_foreign(name):
            mender.look_into(_namespace(module), name)
    mender.look_into(logging.Logger.manager, "logging")  # handlers that no module knows
    return mender.kept


def _mend_contexts(original: Any) -> None:
    """Lets SSL contexts that exist, and classes of them, work with the patched library.

    The original setters find their own class under a name that now leads to its subclass, and would call themselves
    for ever. Those of the patched class do not.
    """
    patched = original and sys.modules["ssl"].SSLContext
    for name in _OF_CONTEXTS if patched is not original else ():
        if name in vars(patched):
            setattr(original, name, vars(patched)[name])


def _is_foreign(name: str) -> bool:
    """Whether the module of that name is an application's, or of a library for applications."""
    top = name.partition(".")[0]
    # The last two are eventlet's copies of the standard library.
    apart = ("__main__", "__original_module_", "__patched_module_")
    return not (top in sys.stdlib_module_names or top in _PATCHERS or top.startswith(apart))


class _Mender:
    """Goes through what modules own, each thing once."""

    def __init__(self, before: Names) -> None:
        self.kept: dict[str, list[str]] = {}
        self._before = before
        """Kept, so that no other object gets the identity of an original."""
        self._context = before.get("ssl", {}).get("SSLContext")
        self._instead: dict[int, object] = {}
        """What is to stand in the place of an original; None if there is no such thing any more."""
        self._waits: dict[int, str] = {}
        """Classes of C or over C, which cannot wait cooperatively."""
        self._seen: dict[int, object] = {}
        """With the objects, for the same reason."""
        self._renewed: dict[int, object] = {}
        self._waiting: deque[tuple[Any, str, str]] = deque()
        """What is still to be gone through: an object, and the module and the name it was found under."""
        for module, names in before.items():
            for name, original in names.items():
                self._compare(f"{module}.{name}", original, vars(sys.modules[module]).get(name))

    def _compare(self, name: str, original: Any, now: object) -> None:
        if now is original or not isinstance(original, _CALLABLE) or original in vars(builtins).values():
            return
        if self._instead.get(id(original)) is None:
            self._instead[id(original)] = now
        if isinstance(original, type) and (original in (_thread._local, SimpleQueue) or not name.startswith(_HARMLESS)):
            self._waits.setdefault(id(original), name)

    def look_into(self, value: object, module: str) -> None:
        self._waiting.append((value, module, ""))
        while self._waiting:
            self._go_through(*self._waiting.popleft())

    def _wait(self, value: object, module: str, name: str) -> None:
        if not issubclass(type(value), _ATOMS):
            self._waiting.append((value, module, name))

    def _note(self, module: str, text: str) -> None:
        self.kept.setdefault(module, []).append(text)

    def _place(self, value: object, put: Put, module: str, name: str) -> None:
        """Looks at one place that holds `value`."""
        other = self._instead.get(id(value), value)
        if other is value:
            other = self._renewed_method(value) if type(value) is BuiltinFunctionType else self._renew(value)
        if other is value:
            self._wait(value, module, name)
            return
        try:
            if other is None:
                raise TypeError
            put(other)
        except (AttributeError, TypeError):
            word = _WORDS.get(type(value), f"the original {getattr(value, '__name__', '')}")
            self._note(module, f"{name} ({word})")

    def _renew(self, value: Any) -> Any:
        """A new object for a lock or the like; the same one for what is none; None if it is in use."""
        make = _NEW.get(type(value))
        if make is None:
            return value
        if id(value) not in self._renewed:
            self._seen[id(value)] = value
            self._renewed[id(value)] = make(value)
        return self._renewed[id(value)]

    def _renewed_method(self, method: Any) -> object:
        """Conditions have the methods of their locks."""
        renewed = self._renew(method.__self__)
        return method if renewed is None or renewed is method.__self__ else getattr(renewed, method.__name__)

    def _go_through(self, value: Any, module: str, name: str) -> None:
        """Asks the object nothing: proxies and lazy objects are what they stand for as soon as they are asked."""
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        kind = type(value)
        if kind in _WRAPPERS:
            for each in gc.get_referents(value):
                self._wait(each, module, name)
        if issubclass(kind, type) or kind is FunctionType:
            module, name = str(value.__module__ or module), value.__qualname__
            goes_on = _is_foreign(module)
        else:
            goes_on = self._is_worth_a_look(value, kind, module, name)
        for key, held, put in _places(value, kind) if goes_on else ():
            self._place(held, put, module, ".".join(filter(None, (name, key))))
        for base in value.__bases__ if goes_on and issubclass(kind, type) else ():
            if id(base) in self._waits:
                self._note(module, f"the class {name} (over the original {self._waits[id(base)]})")

    def _is_worth_a_look(self, value: Any, kind: type, module: str, name: str) -> bool:
        if kind is self._context:
            with suppress(TypeError):  # its class is mended all the same
                value.__class__ = sys.modules["ssl"].SSLContext
            return False
        if issubclass(kind, socket.socket):
            if socket.socket.fileno(value) >= 0 and value.type == socket.SOCK_STREAM:
                self._note(module, f"{name} (a socket)")
            return False
        home = str(kind.__module__)
        return kind in _CONTAINERS or _is_foreign(home) or home.partition(".")[0] in _HOLDS_LOCKS


def _places(holder: Any, kind: type) -> Iterator[tuple[str, object, Put]]:
    """What an object holds: under which name, and how another thing is put there."""
    if issubclass(kind, dict):
        yield from ((str(key), value, partial(dict.__setitem__, holder, key)) for key, value in [*dict.items(holder)])
    elif issubclass(kind, list):
        yield from ((str(key), value, partial(list.__setitem__, holder, key)) for key, value in enumerate([*holder]))
    elif kind is partial:
        yield "", holder.func, partial(setattr, holder, "func")
    elif kind is CellType:
        for value in gc.get_referents(holder):  # there may be nothing in it yet
            yield "", value, partial(setattr, holder, "cell_contents")
    elif kind is FunctionType:
        for index, value in enumerate(holder.__defaults__ or ()):
            yield "", value, partial(_set_default, holder, index)
        for place in ("__kwdefaults__", "__closure__"):
            yield "", getattr(holder, place), partial(setattr, holder, place)
    if issubclass(kind, type):
        own = [(key, value) for key, value in vars(holder).items() if key not in ("__dict__", "__weakref__")]
        yield from ((key, value, partial(type.__setattr__, holder, key)) for key, value in own)
        return
    names = _namespace(holder)
    yield from ((str(key), value, partial(names.__setitem__, key)) for key, value in [*names.items()])
    for key, slot in [*_slots(kind)]:
        with suppress(AttributeError):  # nothing is in it
            yield key, slot.__get__(holder, kind), partial(slot.__set__, holder)


def _slots(kind: type) -> Iterator[tuple[str, MemberDescriptorType]]:
    for each in kind.__mro__ if _is_foreign(str(kind.__module__)) else ():
        yield from ((key, value) for key, value in vars(each).items() if type(value) is MemberDescriptorType)


def _set_default(function: Any, index: int, value: object) -> None:
    defaults = list(function.__defaults__)
    defaults[index] = value
    function.__defaults__ = tuple(defaults)


def _namespace(value: object) -> dict[Any, Any]:
    """What an object's attributes are in, past its class's own __getattr__."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _new_rlock(lock: Any) -> object | None:
    if lock._is_owned() or not lock.acquire(blocking=False):
        return None
    lock.release()
    return threading.RLock()


def _new_local(local: Any) -> object:
    """With what this thread has in it: the greenlet that patches goes on with that."""
    made = threading.local()
    vars(made).update(vars(local))
    return made


_LOCK = type(_thread.allocate_lock())
_NEW: Mapping[type, Callable[[Any], object]] = {
    _LOCK: lambda lock: None if lock.locked() else threading.Lock(),
    _thread.RLock: _new_rlock,
    _thread._local: _new_local,
    SimpleQueue: lambda queue: sys.modules["queue"].SimpleQueue() if queue.empty() else None,
}
_WORDS = {_LOCK: "a lock in use", _thread.RLock: "a lock in use", SimpleQueue: "a queue in use"}

_PATCHERS = ("tricorn", "gevent", "eventlet", "greenlet", "zope")
"""The server, the libraries that patch, and what they need."""
_CALLABLE = (FunctionType, BuiltinFunctionType, type)
_HARMLESS = ("threading.", "_threading_local.", "queue.", "ssl.SSLContext", "subprocess.CompletedProcess")
"""Classes in Python over names that are patched, which wait cooperatively as they are; or they never wait."""
_OF_CONTEXTS = (
    "options", "verify_flags", "verify_mode", "minimum_version", "maximum_version", "wrap_socket", "sslsocket_class",
)  # fmt: skip
_WRAPPERS = (property, staticmethod, classmethod, MethodType, tuple, set, frozenset, deque, partial)
"""Where nothing else can be put in the place of what is inside."""
_CONTAINERS = (dict, list, CellType, partial)
_ATOMS = (str, bytes, int, float, complex, bool, type(None), ModuleType, BuiltinFunctionType)
_CHOOSE_ONCE = ("urllib3.util.wait",)
"""Modules that find out when they are first used what there is, and keep to it: eventlet takes select.poll away."""
_HOLDS_LOCKS = ("threading", "queue", "concurrent", "functools", "logging", "weakref", "collections")
"""Modules whose objects hold locks, or what an application gave them."""
