"""Modules that were imported before the standard library was patched, and what they keep of it.

A module that says `from time import sleep`, or makes a lock while it is imported, keeps the original ones after the
patch. `mend` puts what is patched in the place of what is not, wherever `survey` has found it:

    a name, an attribute, an item, a default, a closure     rebound
    a lock that is free, a thread-local, an empty queue     a new one of the patched kind, the same for all who share it
    a method of such a lock (conditions have some)          that of the new one
    an SSL context, a class of them                         works with the patched sockets
    a class that inherits from an original socket, a held lock, a connected socket, …: named in what it returns
    what a module has asked for as the original             left as it is (`originals`)

Why not patch first? The configuration file is executed by the arbiter, whose threads have to be real: a hook that
serves metrics or runs a scheduler in a thread there would have a greenlet that never gets its turn.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
from _queue import SimpleQueue
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import BuiltinFunctionType
from typing import Any

from tricorn.unpatched import _thread, socket
from tricorn_green.originals import CALLABLE
from tricorn_green.survey import LOCK, Place, Survey

PATCHED = (
    "os", "threading", "_thread", "_threading_local", "time", "socket", "select", "selectors", "ssl", "subprocess",
    "signal", "queue",
)  # fmt: skip
"""The modules that the libraries change."""


def survey() -> Survey:
    """To be called before the patch; for `mend`."""
    return Survey(PATCHED)


def mend(found: Survey) -> Mapping[str, list[str]]:
    """To be called after the patch. Returns what cannot be mended, in words, by module."""
    mender = _Mender(found)
    mender.mend_contexts()
    for name in _CHOOSE_ONCE:
        if name in sys.modules:
            importlib.reload(sys.modules[name])
    for place in found.places:
        mender.mend(place)
    mender.note_what_cannot_wait()
    return mender.kept


class _Mender:
    def __init__(self, found: Survey) -> None:
        self.kept: dict[str, list[str]] = {}
        self._found = found
        self._instead: dict[int, object] = {}
        """Replacement of each original. None if there is none any more."""
        self._waits: dict[int, str] = {}
        """Classes of C or over C, which cannot wait cooperatively."""
        self._renewed: dict[int, object] = {}
        for module, names in found.before.items():
            now = vars(sys.modules[module])
            for name, original in names.items():
                self._compare(f"{module}.{name}", original, now.get(name))

    def _compare(self, name: str, original: Any, now: object) -> None:
        if now is original or not isinstance(original, CALLABLE) or original in vars(builtins).values():
            return
        if self._instead.get(id(original)) is None:
            self._instead[id(original)] = now
        if isinstance(original, type) and (original in (_thread._local, SimpleQueue) or not name.startswith(_HARMLESS)):
            self._waits.setdefault(id(original), name)

    def mend_contexts(self) -> None:
        """Lets SSL contexts that exist, and classes of them, work with the patched library.

        The original setters find their own class under a name that now leads to its subclass, and would call
        themselves for ever. Those of the patched class do not.
        """
        original = self._found.before.get("ssl", {}).get("SSLContext")
        patched = original and sys.modules["ssl"].SSLContext
        if patched is original:
            return
        for name in _OF_CONTEXTS:
            if name in vars(patched):
                setattr(original, name, vars(patched)[name])
        for context in self._found.contexts:
            with suppress(TypeError):  # its class is mended all the same
                context.__class__ = patched

    def mend(self, place: Place) -> None:
        value = place.value
        other = self._instead.get(id(value), value)
        if other is value:
            other = self._renewed_method(value) if type(value) is BuiltinFunctionType else self._renew(value)
        if other is value:
            return
        try:
            if place.get() is not value:  # a hook has put something else there
                return
            if other is None:
                raise TypeError
            place.put(other)
        except (LookupError, ValueError):  # a hook has emptied it
            return
        except (AttributeError, TypeError):
            word = _WORDS.get(type(value), f"the original {getattr(value, '__name__', '')}")
            self._note(place.module, f"{place.name} ({word})")

    def note_what_cannot_wait(self) -> None:
        for each, module, name in self._found.sockets:
            if socket.socket.fileno(each) >= 0 and each.type == socket.SOCK_STREAM:
                self._note(module, f"{name} (a socket)")
        for kind, module in self._found.classes:
            for base in kind.__bases__:
                if id(base) in self._waits:
                    self._note(module, f"the class {kind.__qualname__} (over the original {self._waits[id(base)]})")

    def _note(self, module: str, text: str) -> None:
        self.kept.setdefault(module, []).append(text)

    def _renew(self, value: Any) -> Any:
        """A new object for a lock or the like; the same one for what is none; None if it is in use."""
        make = _NEW.get(type(value))
        if make is None or self._found.is_kept(value):
            return value
        if id(value) not in self._renewed:
            self._renewed[id(value)] = make(value)
        return self._renewed[id(value)]

    def _renewed_method(self, method: Any) -> object:
        """Conditions have the methods of their locks."""
        renewed = self._renew(method.__self__)
        return method if renewed is None or renewed is method.__self__ else getattr(renewed, method.__name__)


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


_NEW: Mapping[type, Callable[[Any], object]] = {
    LOCK: lambda lock: None if lock.locked() else threading.Lock(),
    _thread.RLock: _new_rlock,
    _thread._local: _new_local,
    SimpleQueue: lambda queue: sys.modules["queue"].SimpleQueue() if queue.empty() else None,
}
_WORDS = {LOCK: "a lock in use", _thread.RLock: "a lock in use", SimpleQueue: "a queue in use"}
_HARMLESS = ("threading.", "_threading_local.", "queue.", "ssl.SSLContext", "subprocess.CompletedProcess")
"""Classes in Python over names that are patched, which wait cooperatively as they are; or they never wait."""
_OF_CONTEXTS = (
    "options", "verify_flags", "verify_mode", "minimum_version", "maximum_version", "wrap_socket", "sslsocket_class",
)  # fmt: skip
_CHOOSE_ONCE = ("urllib3.util.wait",)
"""Modules that find out when they are first used what there is, and keep to it: eventlet takes select.poll away."""
