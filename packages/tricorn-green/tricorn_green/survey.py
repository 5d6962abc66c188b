"""Finds where modules hold what monkey-patching replaces, and changes nothing: the arbiter does it for all workers.

    Survey(modules)   in the process that has imported: each object that modules of applications own, once
    look_again()      in a worker: only what has come since (a hook `pre_fork` that imports or assigns something)
    places            each reference to an original function or class, a lock, a thread-local, a queue

The search follows references with `gc.get_referents`, in C, and takes a holder apart only where that shows something to
replace. It asks no other object for its `__dict__`: CPython would make one for each function and instance that has none
yet, which is memory, and in a worker a copy of the page.
"""

from __future__ import annotations

import gc
import logging
import sys
from _queue import SimpleQueue
from collections import deque
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

from tricorn.config import config_file
from tricorn.errors import OWN_PACKAGES
from tricorn.unpatched import _thread, socket
from tricorn_green.originals import Names, Originals

LOCK: Any = type(_thread.allocate_lock())
RENEWED = (LOCK, _thread.RLock, _thread._local, SimpleQueue)
"""Types whose objects are exchanged for patched ones."""

Put = Callable[[Any], object]
"""Puts another object into a place."""


class Place(NamedTuple):
    """One reference that can be replaced."""

    value: Any
    get: Callable[[], object]
    """Returns what is there now. Raises LookupError, AttributeError or ValueError if nothing is."""
    put: Put
    module: str
    name: str
    """Under which the module holds it, for messages."""


class Survey:
    """Survey of what application modules and their libraries hold before the patch. `patched`: what will be patched."""

    def __init__(self, patched: Collection[str]) -> None:
        self.before: Names = {name: dict(vars(sys.modules[name])) for name in patched if name in sys.modules}
        """Contents of each patched module before the patch."""
        self.places: list[Place] = []
        self.contexts: list[Any] = []
        """SSL contexts."""
        self.sockets: list[tuple[Any, str, str]] = []
        """Sockets, with the module and the name they were found under."""
        self.classes: list[tuple[type, str]] = []
        """Classes over an original one, and their modules."""
        self.originals = Originals(self.before)
        self._kept: dict[int, object] = {}
        """Locks and the like whose module has asked for them."""
        self._searched: dict[str, int] = {}
        """The modules that there were, by name, and which objects they were."""
        self.search(dict(sys.modules))

    def look_again(self) -> None:
        """Adds what has come since the last `gc.freeze()`, in new modules and in the configuration file.

        Objects that are frozen were there before, and are not searched.
        """
        roots = {
            name: module
            for name, module in list(sys.modules.items())
            if name == config_file.MODULE_NAME or self._searched.get(name) != id(module)
        }
        if any(map(is_foreign, roots)):
            self.search(roots, only={id(value) for value in gc.get_objects()})

    def keep(self, value: object) -> None:
        """Leaves a lock or the like as it is, wherever it is held."""
        self._kept[id(value)] = value

    def is_kept(self, value: object) -> bool:
        return id(value) in self._kept

    def search(self, modules: Mapping[str, object], only: Container[int] | None = None) -> None:
        """Searches what these modules own. `only`: the ids of the objects that may be searched."""
        search = _Search(self, only)
        for name, module in [*sys.modules.items()]:
            self._searched[name] = id(module)
            search.skip(_namespace(module))  # a root, or not ours to change
        for name, root in modules.items():
            if issubclass(type(root), ModuleType) and is_foreign(name):
                search.begin(_namespace(root), name)
        search.begin(logging.Logger.manager, "logging")  # handlers that no module knows
        was_enabled = gc.isenabled()
        gc.disable()  # the queue would have it go through all there is again and again
        try:
            search.run()
        finally:
            if was_enabled:
                gc.enable()


def is_foreign(name: str) -> bool:
    """Whether the module of that name is an application's, or of a library for applications."""
    top = name.partition(".")[0]
    # The last two are eventlet's copies of the standard library.
    apart = ("__main__", "__original_module_", "__patched_module_")
    return not (top in sys.stdlib_module_names or top in _PATCHERS or top.startswith(apart))


class _Entry(NamedTuple):
    """An object to be searched."""

    value: Any
    module: str
    """Whose it is."""
    parent: _Entry | None
    """Holder of the object."""


class _Kind(Enum):
    """Treatment of the objects of a type."""

    SKIP = auto()
    SEARCH = auto()
    FUNCTION = auto()
    CLASS = auto()
    CONTEXT = auto()
    SOCKET = auto()


class _Search:
    """One pass, which sees each object once. It asks objects nothing: lazy ones would wake up."""

    def __init__(self, found: Survey, only: Container[int] | None) -> None:
        self._found = found
        self._originals = found.originals
        self._names = found.originals.names
        self._only = only
        self._context = found.before.get("ssl", {}).get("SSLContext")
        self._seen: set[int] = set()
        self._queue: deque[_Entry] = deque()
        self._kinds: dict[type, _Kind] = {}
        self._foreign: dict[str, bool] = {}

    def skip(self, value: object) -> None:
        self._seen.add(id(value))

    def begin(self, value: object, module: str) -> None:
        self._queue.append(_Entry(value, module, None))

    def run(self) -> None:
        queue = self._queue
        while queue:
            entry = queue.popleft()
            kind = self._kind(type(entry.value))
            if kind is _Kind.SEARCH:
                if not self._is_asked_for(entry):
                    self._hold(entry, gc.get_referents(entry.value))
            elif kind is _Kind.FUNCTION:
                self._search_function(entry)
            elif kind is _Kind.CLASS:
                self._search_class(entry)
            elif kind is _Kind.CONTEXT:
                self._found.contexts.append(entry.value)
            elif kind is _Kind.SOCKET:
                self._found.sockets.append((entry.value, entry.module, _label(entry)))

    def _kind(self, kind: type) -> _Kind:
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = self._classify(kind)
        return found

    def _classify(self, kind: type) -> _Kind:
        if kind is FunctionType:
            return _Kind.FUNCTION
        if issubclass(kind, type):
            return _Kind.CLASS
        if issubclass(kind, _ATOMS):
            return _Kind.SKIP
        if kind is self._context:
            return _Kind.CONTEXT
        if issubclass(kind, socket.socket):
            return _Kind.SOCKET
        home = str(kind.__module__)
        is_worth_it = kind in _CONTAINERS or self._is_foreign(home) or home.partition(".")[0] in _HOLDS_LOCKS
        return _Kind.SEARCH if is_worth_it else _Kind.SKIP

    def _is_foreign(self, module: str) -> bool:
        found = self._foreign.get(module)
        if found is None:
            found = self._foreign[module] = is_foreign(module)
        return found

    def _search_function(self, entry: _Entry) -> None:
        function = entry.value
        module = str(function.__module__ or entry.module)
        if self._is_foreign(module):
            parts = gc.get_referents(function)
            defaults = function.__defaults__
            if defaults:
                self.skip(defaults)
                parts += defaults
            self._hold(entry._replace(module=module), parts)

    def _search_class(self, entry: _Entry) -> None:
        kind = entry.value
        module = str(kind.__module__ or entry.module)
        if not self._is_foreign(module):
            return
        if any(id(base) in self._names and not self._originals.asks(module, base) for base in kind.__bases__):
            self._found.classes.append((kind, module))
        self._hold(entry._replace(module=module), list(vars(kind).values()))

    def _hold(self, entry: _Entry, parts: Sequence[Any]) -> None:
        """Notes the places of `entry` if one of its parts can be replaced, and goes on with the others."""
        seen, only, kinds, names = self._seen, self._only, self._kinds, self._names
        found = False
        for part in parts:
            kind = type(part)
            if kind in RENEWED or id(part) in names:
                found = True
            elif kind is BuiltinFunctionType:  # conditions have the methods of their locks
                found = found or type(part.__self__) in RENEWED
            elif kinds.get(kind) is not _Kind.SKIP and id(part) not in seen and (only is None or id(part) in only):
                seen.add(id(part))
                if self._kind(kind) is not _Kind.SKIP:
                    self._queue.append(_Entry(part, entry.module, entry))
        if found:
            self._note(entry)

    def _note(self, entry: _Entry) -> None:
        for key, held, get, put in _places(entry.value, type(entry.value)):
            of = held.__self__ if type(held) is BuiltinFunctionType and id(held) not in self._names else held
            if type(of) not in RENEWED and id(of) not in self._names:
                continue
            if self._originals.asks(entry.module, of):
                if type(of) in RENEWED:
                    self._found.keep(of)
            else:
                name = ".".join(filter(None, (_label(entry), key)))
                self._found.places.append(Place(held, get, put, entry.module, name))

    def _is_asked_for(self, entry: _Entry) -> bool:
        """Whether it is an object of an original class that its module has asked for: `get_original(…, "Event")()`."""
        return id(type(entry.value)) in self._names and self._originals.asks(entry.module, entry.value)


def _label(entry: _Entry) -> str:
    """Under which name a module holds an object."""
    value, parent = entry.value, entry.parent
    if type(value) is FunctionType or issubclass(type(value), type):
        return str(value.__qualname__)
    if parent is None:
        return ""
    key = next((key for key, held, _, _ in _places(parent.value, type(parent.value)) if held is value), "")
    return ".".join(filter(None, (_label(parent), key)))


_Held = tuple[str, object, Callable[[], object], Put]
"""Under which name something is held, what, how it is read, and how another thing is put there."""


def _places(holder: Any, kind: type) -> Iterator[_Held]:
    """Yields what an object holds."""
    if issubclass(kind, type):
        for key, value in [*vars(holder).items()]:
            yield key, value, partial(_own, holder, key), partial(type.__setattr__, holder, key)
        return
    yield from _items(holder, kind)
    names = {} if kind is FunctionType else _namespace(holder)
    for key, value in [*names.items()]:
        yield str(key), value, partial(names.__getitem__, key), partial(names.__setitem__, key)
    for key, slot in [*_slots(kind)]:
        with suppress(AttributeError):  # nothing is in it
            yield key, slot.__get__(holder, kind), partial(slot.__get__, holder, kind), partial(slot.__set__, holder)


def _items(holder: Any, kind: type) -> Iterator[_Held]:
    """Yields the items of a container, and what a function has besides its attributes."""
    if issubclass(kind, dict):
        for key, value in [*dict.items(holder)]:
            yield str(key), value, partial(dict.__getitem__, holder, key), partial(dict.__setitem__, holder, key)
    elif issubclass(kind, list):
        for index, value in enumerate([*holder]):
            yield str(index), value, partial(list.__getitem__, holder, index), partial(list.__setitem__, holder, index)
    elif kind is FunctionType:
        for index, value in enumerate(holder.__defaults__ or ()):
            yield "", value, partial(_default, holder, index), partial(_set_default, holder, index)
    elif kind is CellType:
        for value in gc.get_referents(holder):  # there may be nothing in it yet
            yield "", value, partial(getattr, holder, "cell_contents"), partial(setattr, holder, "cell_contents")
    elif kind is partial:
        yield "", holder.func, partial(getattr, holder, "func"), partial(setattr, holder, "func")


def _slots(kind: type) -> Iterator[tuple[str, MemberDescriptorType]]:
    for each in kind.__mro__ if is_foreign(str(kind.__module__)) else ():
        yield from ((key, value) for key, value in vars(each).items() if type(value) is MemberDescriptorType)


def _own(kind: type, key: str) -> object:
    return vars(kind)[key]


def _default(function: Any, index: int) -> object:
    return function.__defaults__[index]


def _set_default(function: Any, index: int, value: object) -> None:
    defaults = list(function.__defaults__)
    defaults[index] = value
    function.__defaults__ = tuple(defaults)


def _namespace(value: object) -> dict[Any, Any]:
    """Returns the namespace of an object, past its class's own __getattr__."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


_PATCHERS = (*OWN_PACKAGES, "gevent", "eventlet", "greenlet", "zope")
"""The server, the libraries that patch, and what they need."""
_CONTAINERS = (
    dict, list, tuple, set, frozenset, deque, CellType, partial, property, staticmethod, classmethod, MethodType,
)  # fmt: skip
_ATOMS = (str, bytes, int, float, complex, bool, type(None), ModuleType, BuiltinFunctionType, CodeType)
_HOLDS_LOCKS = ("threading", "queue", "concurrent", "functools", "logging", "weakref", "collections")
"""Modules whose objects hold locks, or what an application gave them."""
