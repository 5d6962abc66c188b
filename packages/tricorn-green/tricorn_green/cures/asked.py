"""Targets of the setting `offload`: `package.module:Class.method`, `package.module:function`."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tricorn.spelling import hint
from tricorn_green.cures.replace import always, first, holders, how_of, is_changeable, patch, subclass, waiting
from tricorn_green.offload import Affinity, How

if TYPE_CHECKING:
    from tricorn_green.drivers.records import Apply, Ground


class Target(NamedTuple):
    text: str
    module: str
    names: tuple[str, ...]
    affinity: Affinity


def parse(text: str) -> Target:
    """Parses a text that the setting has accepted."""
    place, _, affinity = text.partition("@")
    module, _, names = place.partition(":")
    return Target(text, module, tuple(names.split(".")), cast("Affinity", affinity or "any"))


def treatment(target: Target) -> Apply:
    def apply(module: ModuleType, ground: Ground) -> None:
        problem = _replace(module, target)
        if problem:
            ground.say("warning", f"offload: {target.text} is not offloaded: {problem}")
        else:
            ground.say("info", f"{target.text} is called by threads of the server (offload).")

    return apply


def not_applied(target: Target, module: Any) -> str | None:
    """Returns a warning if the module was imported before: names that others have taken are not replaced any more."""
    value = getattr(module, target.names[0], None)
    if isinstance(value, type) and is_changeable(value):
        return None
    places = holders([value], target.module.partition(".")[0]) if value is not None else []
    if not places:
        return None
    return f"offload: {target.text} was imported before it could be replaced: {'; '.join(places)} keep the original."


def _replace(module: Any, target: Target) -> str:
    """Why not, if it cannot be."""
    holder = module
    for name in target.names:
        if not hasattr(holder, name):
            known = [each for each in dir(holder) if not each.startswith("__")]
            return f"there is no {name} in {getattr(holder, '__name__', holder)}{hint(name, known)}"
        holder = getattr(holder, name)
    if not callable(holder):
        return "it is nothing that can be called."
    *owners, last = target.names
    if not owners:
        how = How(target.affinity, owner=first if target.affinity == "object" else None, name=target.text)
        if not getattr(holder, "__tricorn__", False):
            setattr(module, last, waiting(holder, how))
        return ""
    if len(owners) > 1 or not isinstance(getattr(module, owners[0]), type):
        return "expected package.module:function or package.module:Class.method."
    return _replace_method(module, getattr(module, owners[0]), target)


def _replace_method(module: Any, kind: type, target: Target) -> str:
    name = target.names[-1]
    methods = always(name)
    if target.affinity == "object" and name != "__init__":
        methods |= always("__init__")  # what must not change its thread begins on it
    how = How(target.affinity, serial=True)
    if is_changeable(kind):
        own = vars(kind).get(name)
        if isinstance(own, staticmethod | classmethod):
            called = waiting(own.__func__, how_of(kind, name, How(target.affinity)))
            setattr(kind, name, type(own)(called))
        else:
            patch(kind, methods, how)
        return ""
    try:
        setattr(module, target.names[0], subclass(kind, methods, how))
    except TypeError as error:
        return f"{error}: it is written in C. Wrap its calls with tricorn.offload."
    return ""
