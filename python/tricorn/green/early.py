"""Modules that were imported before the standard library was patched, and what they keep of it.

A module that says `from time import sleep`, or makes a lock while it is imported, keeps the original ones after the
patch. `mend` goes through everything that such modules own (their names, classes, functions, objects) and puts what is
patched in the place of what is not:

    a name, an attribute, an item, a default, a closure     rebound
    a lock that is free, a thread-local, an empty queue     a new one of the patched kind, the same for all who share it
    a condition                                             over the new lock
    an SSL context, a class of them                         works with the patched sockets
    a class that inherits from an original socket, a held lock, a connected socket, …: named in a Finding
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from _queue import SimpleQueue
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from tricorn.unpatched import _thread, socket

PATCHED = (
    "os", "threading", "_thread", "_threading_local", "time", "socket", "select", "selectors", "ssl", "subprocess",
    "signal", "queue",
)  # fmt: skip
"""The modules that the libraries change."""

Names = Mapping[str, Mapping[str, object]]
"""What was in each of these modules."""

MOST_NAMED = 5
"""In one Finding."""


@dataclass(slots=True)
class Finding:
    """What a module keeps, in words."""

    module: str
    kept: list[str] = field(default_factory=list)


def remember() -> Names:
    """To be called before the patch; for `mend`."""
    return {name: dict(vars(sys.modules[name])) for name in PATCHED if name in sys.modules}


def other_threads() -> list[Finding]:
    """To be called before the patch: threads that run already, and will always be real ones."""
    findings: list[Finding] = []
    if not _thread._count():
        return findings
    for thread in threading.enumerate():
        target = getattr(thread, "_target", None) or type(thread)
        module = str(getattr(target, "__module__", None) or "threading")
        if thread.name != "MainThread" and not _is_ours(module):
            findings.append(Finding(module, [f"the thread {thread.name!r}"]))
    return findings


def mend(before: Names) -> list[Finding]:
    """To be called after the patch. Returns what cannot be mended, by module."""
    originals = _Originals(before)
    _mend_contexts(before)
    for name in _CHOOSE_ONCE:
        if name in sys.modules:
            importlib.reload(sys.modules[name])
    mender = _Mender(originals)
    for name, module in list(sys.modules.items()):
        if issubclass(type(module), ModuleType) and _is_foreign(name):
            mender.mend_module(name, _namespace(module))
    return [_shortened(finding) for finding in mender.findings.values()]


def _shortened(finding: Finding) -> Finding:
    more = len(finding.kept) - MOST_NAMED
    if more > 0:
        finding.kept[MOST_NAMED:] = [f"{more} more"]
    return finding


def _is_foreign(name: str) -> bool:
    """Whether the module of that name is an application's, or of a library for applications."""
    top = name.partition(".")[0]
    # The last two are eventlet's copies of the standard library.
    apart = ("__main__", "__original_module_", "__patched_module_")
    return not (top in sys.stdlib_module_names or _is_ours(name) or top.startswith(apart))


def _is_ours(name: str) -> bool:
    """Whether it belongs to the server, or to the libraries that patch and what they need."""
    return name.partition(".")[0] in ("tricorn", "gevent", "eventlet", "greenlet", "zope")


class _Originals:
    """Which object is to stand in the place of which."""

    def __init__(self, before: Names) -> None:
        self._patched: dict[int, object] = {}
        self._kept: list[object] = []
        """So that no other object gets the identity of one of them."""
        self.gone: dict[int, str] = {}
        """What has no patched counterpart."""
        self.classes: dict[int, str] = {}
        """Classes of C or over C, which cannot wait cooperatively."""
        for module, names in before.items():
            now = vars(sys.modules[module])
            for name, original in names.items():
                if now.get(name) is not original and _is_callable(original):
                    self._note(f"{module}.{name}", original, now.get(name))
        self.gone = {number: name for number, name in self.gone.items() if number not in self._patched}
        self.context: Any = before.get("ssl", {}).get("SSLContext")

    def _note(self, name: str, original: object, patched: object) -> None:
        self._kept.append(original)
        if patched is None:
            self.gone.setdefault(id(original), name)
        else:
            self._patched.setdefault(id(original), patched)
        if isinstance(original, type) and (original in _OF_C or not name.startswith(_HARMLESS)):
            self.classes.setdefault(id(original), name)

    def patched(self, value: object) -> object:
        """What is to stand in its place: another object, or the same."""
        return self._patched.get(id(value), value)


def _is_callable(value: object) -> bool:
    return isinstance(value, FunctionType | BuiltinFunctionType | type) and value not in _BUILTINS


_BUILTINS = frozenset(value for value in vars(sys.modules["builtins"]).values() if isinstance(value, type))
_HARMLESS = ("threading.", "_threading_local.", "queue.", "ssl.SSLContext", "subprocess.CompletedProcess")
"""Classes in Python over names that are patched, which wait cooperatively as they are; or they never wait."""


def _mend_contexts(before: Names) -> None:
    """Lets SSL contexts that exist, and classes of them, work with the patched library.

    Their setters find their own class under a name that now leads to its subclass, and would call themselves for ever.
    """
    original: Any = before.get("ssl", {}).get("SSLContext")
    patched: Any = getattr(sys.modules.get("ssl"), "SSLContext", None)
    if original is None or patched is original:
        return
    names = {**vars(sys.modules["ssl"]), "SSLContext": original}
    for name, value in list(vars(original).items()):
        setter = value.fset if isinstance(value, property) else None
        if isinstance(setter, FunctionType) and "SSLContext" in setter.__code__.co_names:
            setattr(original, name, property(value.fget, _over(names, setter), value.fdel, value.__doc__))
    for name in ("wrap_socket", "sslsocket_class"):
        if name in vars(patched):
            setattr(original, name, vars(patched)[name])


def _over(names: dict[str, Any], function: FunctionType) -> FunctionType:
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)


class _Mender:
    """Goes through what modules own, each thing once."""

    def __init__(self, originals: _Originals) -> None:
        self.findings: dict[str, Finding] = {}
        self._originals = originals
        self._seen: dict[int, object] = {}
        """With the objects, so that none of them goes and another gets its identity."""
        self._renewed: dict[int, object] = {}
        self._waiting: deque[tuple[object, str, str]] = deque()
        """What is still to be gone through: an object, and the module and the name it was found under."""

    def mend_module(self, name: str, names: dict[str, object]) -> None:
        self._items(names, name, "")
        while self._waiting:
            self._go_through(*self._waiting.popleft())

    def _note(self, module: str, text: str) -> None:
        self.findings.setdefault(module, Finding(module)).kept.append(text)

    def _slot(self, value: object, put: Callable[[Any], object], module: str, name: str) -> None:
        """Looks at one place that holds `value`; `put` puts another object there."""
        other = self._originals.patched(value)
        if other is value:
            other = self._renew(value, module, name)
        if other is not value:
            try:
                put(other)
            except (AttributeError, TypeError):
                self._note(module, f"{name} ({_word(value)})")
        elif id(value) in self._originals.gone:
            self._note(module, f"{name} ({self._originals.gone[id(value)]}, which is gone)")
        elif not issubclass(type(value), _ATOMS):
            self._waiting.append((value, module, name))

    def _renew(self, value: object, module: str, name: str) -> object:
        """A new object for a lock or the like; the same one if there is none, or it is in use."""
        make = _NEW.get(type(value))
        if make is None:
            return value
        if id(value) not in self._renewed:
            made = make(value)
            if made is None:
                self._note(module, f"{name} ({_word(value)} in use)")
            self._renewed[id(value)] = value if made is None else made
            self._seen[id(value)] = value
        return self._renewed[id(value)]

    def _go_through(self, value: object, module: str, name: str) -> None:
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        kind = type(value)
        if issubclass(kind, type):
            self._class(value)  # type: ignore[arg-type]
        elif kind is FunctionType:
            self._function(value, module)  # type: ignore[arg-type]
        elif kind in (dict, defaultdict, OrderedDict):
            self._items(value, module, f"{name}.")  # type: ignore[arg-type]
        elif kind is list:
            self._list(value, module, name)  # type: ignore[arg-type]
        elif kind is functools.partial:
            self._partial(value, module, name)
        elif kind in _WRAPPERS:
            self._waiting.extend((each, module, name) for each in _wrapped(value))
        else:
            self._instance(value, kind, module, name)

    def _list(self, items: list[object], module: str, name: str) -> None:
        for index, item in enumerate(items):
            self._slot(item, partial(items.__setitem__, index), module, name)

    def _partial(self, made: Any, module: str, name: str) -> None:
        self._slot(made.func, partial(setattr, made, "func"), module, name)
        self._waiting.extend((each, module, name) for each in (made.args, made.keywords))

    def _items(self, found: dict[Any, Any], module: str, prefix: str) -> None:
        for key, value in list(found.items()):
            self._slot(value, partial(found.__setitem__, key), module, f"{prefix}{key}")

    def _class(self, kind: type) -> None:
        module, name = str(kind.__module__), kind.__qualname__
        if not _is_foreign(module):
            return
        for key, value in list(vars(kind).items()):
            if key not in ("__dict__", "__weakref__"):
                self._slot(value, partial(type.__setattr__, kind, key), module, f"{name}.{key}")
        for base in kind.__bases__:
            if id(base) in self._originals.classes:
                self._note(module, f"the class {name} (over the original {self._originals.classes[id(base)]})")

    def _function(self, function: FunctionType, module: str) -> None:
        module, name = function.__module__ or module, function.__qualname__
        if not _is_foreign(module):
            return
        if function.__defaults__:
            defaults = list(function.__defaults__)
            for index, value in enumerate(defaults):
                self._slot(value, partial(defaults.__setitem__, index), module, name)
            function.__defaults__ = tuple(defaults)
        if function.__kwdefaults__:
            self._items(function.__kwdefaults__, module, f"{name}.")
        for cell in function.__closure__ or ():
            self._cell(cell, module, name)
        self._items(vars(function), module, f"{name}.")

    def _cell(self, cell: CellType, module: str, name: str) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # nothing is in it yet
            return
        self._slot(value, partial(setattr, cell, "cell_contents"), module, name)

    def _instance(self, value: Any, kind: type, module: str, name: str) -> None:
        """Asks the object nothing: proxies and lazy objects are what they stand for as soon as they are asked."""
        home = str(kind.__module__)
        if issubclass(kind, threading.Condition):
            self._condition(value, module, name)
        elif issubclass(kind, socket.socket):
            if socket.socket.fileno(value) >= 0 and value.type == socket.SOCK_STREAM:
                self._note(module, f"{name} (a socket)")
        elif kind is self._originals.context:
            _become_patched(value)
        elif _is_foreign(home) or home.partition(".")[0] in _WORTH_A_LOOK:
            self._items(_namespace(value), module, f"{name}.")
            for key, slot in _slots(kind):
                try:
                    held = slot.__get__(value, kind)
                except AttributeError:  # nothing is in it
                    continue
                self._slot(held, partial(slot.__set__, value), module, f"{name}.{key}")

    def _condition(self, condition: Any, module: str, name: str) -> None:
        """Its methods are those of its lock, and its waiters wait with locks of their own."""
        lock = condition._lock
        renewed = self._renew(lock, module, name)
        if renewed is lock:
            self._waiting.append((lock, module, name))
        elif condition._waiters:
            self._note(module, f"{name} (a condition that is waited for)")
        else:
            vars(condition).clear()
            type(condition).__init__(condition, renewed)


def _wrapped(value: Any) -> Iterator[object]:
    """What stands behind a method or in a container, where nothing else can be put in its place."""
    kind = type(value)
    if kind is property:
        yield from (value.fget, value.fset, value.fdel)
    elif kind in (staticmethod, classmethod):
        yield value.__func__
    elif kind is MethodType:
        yield from (value.__func__, value.__self__)
    else:
        yield from value


def _namespace(value: object) -> dict[Any, Any]:
    """What an object's attributes are in, past its class's own __getattr__."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _slots(kind: type) -> Iterator[tuple[str, MemberDescriptorType]]:
    for each in kind.__mro__:
        if _is_foreign(str(each.__module__)):
            yield from ((key, value) for key, value in vars(each).items() if type(value) is MemberDescriptorType)


def _become_patched(context: Any) -> None:
    try:
        context.__class__ = sys.modules["ssl"].SSLContext
    except TypeError:
        pass  # `_mend_contexts` is enough for it to work


def _new_lock(lock: Any) -> object | None:
    return None if lock.locked() else threading.Lock()


def _new_rlock(lock: Any) -> object | None:
    if lock._is_owned() or not lock.acquire(blocking=False):
        return None
    lock.release()
    return threading.RLock()


def _new_local(local: Any) -> object | None:
    """With what this thread has in it: the greenlet that patches goes on with that."""
    made = threading.local()
    vars(made).update(vars(local))
    return made


def _new_queue(queue: Any) -> object | None:
    return sys.modules["queue"].SimpleQueue() if queue.empty() else None


def _word(value: object) -> str:
    return _WORDS.get(type(value), f"the original {getattr(value, '__name__', type(value).__name__)}")


_LOCK = type(_thread.allocate_lock())
_OF_C = (_thread._local, SimpleQueue)

_NEW: dict[type, Callable[[Any], object | None]] = {
    _LOCK: _new_lock,
    _thread.RLock: _new_rlock,
    _thread._local: _new_local,
    SimpleQueue: _new_queue,
}
_WORDS = {_LOCK: "a lock", _thread.RLock: "a lock", _thread._local: "a thread-local", SimpleQueue: "a queue"}

_WRAPPERS = (property, staticmethod, classmethod, MethodType, tuple, set, frozenset, deque)
_ATOMS = (str, bytes, int, float, complex, bool, type(None), ModuleType, BuiltinFunctionType)
_CHOOSE_ONCE = ("urllib3.util.wait",)
"""Modules that find out when they are first used what there is, and keep to it: eventlet takes select.poll away."""
_WORTH_A_LOOK = ("threading", "queue", "concurrent", "functools", "logging", "weakref")
"""Modules whose objects hold locks, or what an application gave them."""
