"""Three ways to have a thread make calls of a class, depending on what can be changed.

    subclass   a class in C is immutable: a subclass of the same name stands in its place in the module
    patch      a class in Python: its methods
    Proxy      a class in C that cannot be derived from, and whose objects other C code makes: something around them

`isinstance` agrees with the original class in all three. A subclass has its name and its module, so that its objects
are pickled as the original's are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import ModuleType
from typing import Any, TypeAlias

from tricorn_green import offload as offloading
from tricorn_green.offload import How

Waits = Callable[[tuple[Any, ...], dict[str, Any]], bool]
"""Whether a call with these arguments, without `self`, waits at all."""

_IMMUTABLE = 1 << 8
"""Py_TPFLAGS_IMMUTABLETYPE; before Python 3.10 nothing told."""
_HEAP = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: made at run time."""

Methods: TypeAlias = Mapping[str, Waits | None]
"""Methods by name, with the cases in which they wait. None: always."""


def always(*names: str) -> dict[str, Waits | None]:
    return dict.fromkeys(names)


def unless_zero(place: int, name: str = "timeout") -> Waits:
    """Returns the rule for a method whose argument in this place is a timeout: it waits unless that is 0."""

    def waits(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return bool((args[place] if len(args) > place else kwargs.get(name, -1)) != 0)

    return waits


def waiting(function: Callable[..., Any], how: How, waits: Waits | None = None) -> Callable[..., Any]:
    """`function` or method, called by a thread if it waits."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if waits is not None and not waits(args[1:], kwargs):
            return function(*args, **kwargs)
        return offloading.run(how, function, args, kwargs)

    called.__tricorn__ = True  # type: ignore[attr-defined]
    return called


def in_callbacks(kind: type, how: How, *names: str) -> dict[str, Callable[..., Any]]:
    """Methods that never wait, and that callbacks call: by the thread that calls back, which waits for them."""

    def make(name: str) -> Callable[..., Any]:
        plain, own = getattr(kind, name), how_of(kind, name, how)

        @wraps(plain)
        def called(*args: Any, **kwargs: Any) -> Any:
            return offloading.run_if_visited(own, plain, args, kwargs)

        return called

    return {name: make(name) for name in names if hasattr(kind, name)}


def first(args: Sequence[Any]) -> Any:
    """The object whose method is called."""
    return args[0]


def how_of(kind: type, name: str, how: How) -> How:
    return How(how.affinity, how.serial, how.owner or first, f"{kind.__qualname__}.{name}")


def subclass(original: type, methods: Methods, how: How, names: Mapping[str, Any] | None = None) -> Any:
    """A class of the same name; `names` is what it has besides."""
    namespace: dict[str, Any] = {
        name: waiting(getattr(original, name), how_of(original, name, how), waits)
        for name, waits in methods.items()
        if hasattr(original, name)
    }
    namespace |= {
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
        "__doc__": original.__doc__,
        "__tricorn__": True,
        **(names or {}),
    }
    return type(original)(original.__name__, (original,), namespace)


def patch(kind: type, methods: Methods, how: How) -> None:
    """Patches the methods of a class in Python, once."""
    for name, waits in methods.items():
        method = getattr(kind, name, None)
        if method is not None and not getattr(method, "__tricorn__", False):
            setattr(kind, name, waiting(method, how_of(kind, name, how), waits))


class Proxy:
    """Around an object that only C can make: what it is asked, it is asked by a thread if that waits.

    `isinstance` takes it for what it stands for, since that looks at `__class__`, too.
    """

    __slots__ = ("__weakref__", "_tricorn_of", "_tricorn_rules")

    def __init__(self, of: Any, rules: Rules) -> None:
        object.__setattr__(self, "_tricorn_of", of)
        object.__setattr__(self, "_tricorn_rules", rules)

    def __getattribute__(self, name: str) -> Any:
        of = object.__getattribute__(self, "_tricorn_of")
        if name == "__class__":
            return type(of)
        if name in ("_tricorn_of", "_tricorn_rules"):
            return object.__getattribute__(self, name)
        return object.__getattribute__(self, "_tricorn_rules").attribute(self, of, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._tricorn_of, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._tricorn_of, name)

    def __bool__(self) -> bool:
        return len(self) > 0 if hasattr(self._tricorn_of, "__len__") else True

    def __repr__(self) -> str:
        return repr(self._tricorn_of)

    def __dir__(self) -> list[str]:
        return dir(self._tricorn_of)


def _special(name: str) -> Callable[..., Any]:
    def method(self: Proxy, *args: Any) -> Any:
        return self._tricorn_rules.attribute(self, self._tricorn_of, name)(*args)

    method.__name__ = name
    return method


# Python looks for these in the class, and not in the object.
for _name in ("enter", "exit", "iter", "next", "len", "getitem", "setitem"):
    setattr(Proxy, f"__{_name}__", _special(f"__{_name}__"))


class Rules:
    """Rules for the proxies of a library: which methods wait, and in which queue their calls do."""

    def __init__(self, methods: Mapping[type, Methods], how: How) -> None:
        self._methods = methods
        self._how = how

    def proxy(self, value: Any, owner: Proxy | None = None) -> Any:
        """`value` behind a proxy if it is of a class that waits. It waits in the line of `owner`, or its own."""
        if type(value) not in self._methods:
            return value
        rules = Rules(self._methods, self._how if owner is None else self._owned_by(owner))
        return Proxy(value, rules)

    def _owned_by(self, owner: Proxy) -> How:
        how = self._how
        if how.owner is not None:  # an object of an object: a cursor of a connection
            return how
        return How(how.affinity, how.serial, lambda _: owner, how.name)

    def attribute(self, proxy: Proxy, of: Any, name: str) -> Any:
        """An attribute of what is behind the proxy; what a method returns is behind one if it waits, too."""
        value = getattr(of, name)
        if not callable(value):
            return proxy if value is of else self.proxy(value, proxy)
        methods, how = self._methods[type(of)], self._how
        waits = name in methods

        @wraps(value)
        def called(*args: Any, **kwargs: Any) -> Any:
            if waits:
                own = How(how.affinity, how.serial, how.owner or (lambda _: proxy), f"{type(of).__qualname__}.{name}")
                result = offloading.run(own, value, args, kwargs)
            else:
                result = value(*args, **kwargs)
            return proxy if result is of else self.proxy(result, proxy)

        return called


def is_changeable(kind: type) -> bool:
    """Whether the names of a class can be set."""
    return bool(kind.__flags__ & _HEAP) and not kind.__flags__ & _IMMUTABLE


def holders(values: Sequence[Any], package: str) -> list[str]:
    """Modules outside of a package that hold one of these objects under a name of their own, and where they are."""
    wanted = {id(value) for value in values}
    found = []
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package or not isinstance(module, ModuleType):
            continue
        names = [key for key, value in list(vars(module).items()) if id(value) in wanted]
        if names:
            file = getattr(module, "__file__", None)
            found.append(f"{', '.join(names)} in {name}" + (f" ({file})" if file else ""))
    return found
