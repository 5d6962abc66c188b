"""Locks that were made before the standard library was patched, wherever modules lead to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any

Put = Callable[[Any, Any, Any], object]
"""Into a holder, at a place, an object."""


def replace(modules: dict[str, Any], kind: type, renew: Callable[[Any], object]) -> None:
    """Puts `renew(lock)` in the place of each lock of this kind, the same one in all its places.

    The way leads through the values of dicts, the items of lists and attributes, as eventlet's own search does. That
    one makes several calls for each object that there is; this one passes over those that by their type lead nowhere.
    It asks no object what it is: a lazy one would become what it stands for.
    """
    search = _Search(kind, renew)
    search.waiting.append(modules)
    while search.waiting:
        search.look_into(search.waiting.pop())


class _Search:
    def __init__(self, kind: type, renew: Callable[[Any], object]) -> None:
        self.waiting: list[Any] = []
        self._kind = kind
        self._renew = renew
        self._renewed: dict[object, object] = {}
        self._leads_on = _LeadsOn(kind)
        self._seen: dict[int, object] = {}
        """With the objects, so that none of them goes and another gets its identity."""

    def look_into(self, holder: Any) -> None:
        kind = type(holder)
        if issubclass(kind, dict):
            self._go_through(dict.items(holder), holder, dict.__setitem__)
        elif issubclass(kind, list):
            self._go_through(enumerate(holder), holder, list.__setitem__)
        try:
            names = object.__getattribute__(holder, "__dict__")
        except AttributeError:
            return
        if issubclass(type(names), (dict, MappingProxyType)) and names:  # functions, which most are, have none
            self._go_through(names.items(), holder, setattr)

    def _go_through(self, places: Iterable[tuple[Any, Any]], holder: Any, put: Put) -> None:
        for place, value in list(places):
            kind = type(value)
            if not self._leads_on[kind] or id(value) in self._seen:
                continue
            if not issubclass(kind, self._kind):
                self._seen[id(value)] = value
                self.waiting.append(value)
                continue
            if value not in self._renewed:
                self._renewed[value] = self._renew(value)
            try:
                put(holder, place, self._renewed[value])
            except Exception:
                pass  # what does not take another lock keeps its own


class _LeadsOn(dict[type, bool]):
    """Whether objects of a type may hold others, or are what is searched for."""

    def __init__(self, kind: type) -> None:
        self._kinds = (dict, list, kind)

    def __missing__(self, kind: type) -> bool:
        self[kind] = kind.__dictoffset__ != 0 or issubclass(kind, self._kinds)
        return self[kind]
