"""Kinds of values that are names of something in the world: a user, a file, a function.

Users, groups and functions are looked up when the value is made. Files and directories are looked up by `resolve`
when it knows the directory that relative paths are relative to (`chdir`).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from functools import wraps
from types import FunctionType, MethodType
from typing import Any

from tricorn.config.validators import Malformed, OptionalText, Refused, Text, TextList, digits
from tricorn.errors import ConfigError
from tricorn.record import Record
from tricorn.spelling import hint

AnyHook = Callable[..., Any]

GLOB_CHARACTERS = frozenset("*?[")


class Hook(Record):
    """A function that can be called with these arguments, or its dotted name.

    With `fewest` it may take only so many of the first ones; it is made one that is called with all of them.
    """

    arguments: str
    """Parameters as the documents show them: `server, worker`."""
    fewest: int | None = None
    metavar: str = "FUNCTION"

    @property
    def arity(self) -> int:
        return self.arguments.count(",") + 1

    def parse(self, raw: object) -> AnyHook:
        found = _import_object(raw) if isinstance(raw, str) else raw
        if not callable(found):
            raise Malformed("expected a function")
        arities = range(self.arity, (self.fewest or self.arity) - 1, -1)
        for arity in arities:
            if accepts(found, arity):
                return found if arity == self.arity else _first_arguments(found, arity)
        *more, last = map(str, arities)
        numbers = f"{', '.join(more)} or {last}" if more else last
        raise Refused(f"expected a function of {numbers} argument{'s' if self.arity > 1 else ''}")


class ClassName(Record):
    """A class, or the text that names it; a function is called for one, as in gunicorn."""

    names: tuple[str, ...] = ()
    """Known names."""
    metavar: str = "STRING"

    def parse(self, raw: object) -> Any:
        """A `str` or a `type`; which of them is for the user of the setting to see."""
        if isinstance(raw, FunctionType | MethodType):
            raw = raw()
        if isinstance(raw, type):
            return raw
        if isinstance(raw, str) and raw.strip():
            return raw.strip()
        raise Malformed("expected a class or the name of one")


HAS_NUMBERS = hasattr(os, "geteuid")
"""Whether users and groups have numbers here; on Windows they have not, and `user` and `group` have no effect."""


def own_user() -> int:
    """Returns the number of the user who starts the server."""
    return os.geteuid() if HAS_NUMBERS else 0


def own_group() -> int:
    return os.getegid() if HAS_NUMBERS else 0


class User(Record):
    """The number of a user, from a number or a name. A number need not have a name: containers use such."""

    metavar: str = "USER"

    def parse(self, raw: object) -> int:
        if not HAS_NUMBERS:
            return own_user()
        import pwd

        return _identity(raw, "user", lambda name: pwd.getpwnam(name).pw_uid, os.geteuid)


class Group(Record):
    """The number of a group, from a number or a name."""

    metavar: str = "GROUP"

    def parse(self, raw: object) -> int:
        if not HAS_NUMBERS:
            return own_group()
        import grp

        return _identity(raw, "group", lambda name: grp.getgrnam(name).gr_gid, os.getegid)


_EXIST = {
    "FILE": ("file", os.path.isfile),
    "FILE#NAME": ("file", lambda path: os.path.isfile(path.partition("#")[0])),
    "DIR": ("directory", os.path.isdir),
    "FILES": ("file or directory", lambda path: bool(GLOB_CHARACTERS & set(path)) or os.path.exists(path)),
}
"""Kinds of paths, each with a test for its existence. Patterns may match later."""


class ExistingPath(Record):
    """A file (FILE, FILE#NAME) or a directory (DIR) that exists; None and the empty text mean that there is none."""

    metavar: str

    def parse(self, raw: object) -> str | None:
        return OptionalText().parse(raw)

    def look_up(self, value: str | None, directory: str) -> None:
        """Raises Refused unless it is there; a relative path begins at `directory`."""
        what, exists = _EXIST[self.metavar]
        if value is not None and not exists(os.path.join(directory, value)):
            raise Refused(f"expected a {what} that exists")


class ExistingPaths(Record):
    """Several. A text is one of them if they may be patterns (FILES), which contain commas."""

    metavar: str

    def parse(self, raw: object) -> tuple[str, ...]:
        return TextList().parse((raw,) if self.metavar == "FILES" and isinstance(raw, str) else raw)

    def look_up(self, value: tuple[str, ...], directory: str) -> None:
        what, exists = _EXIST[self.metavar]
        for path in value:
            if not exists(os.path.join(directory, path)):
                raise Refused(f"the {what} {path!r} does not exist")


class Dictionary(Record):
    """A dict, kept as it is."""

    metavar: str = "DICT"

    def parse(self, raw: object) -> Mapping[str, Any]:
        if isinstance(raw, str):
            raw = _json(raw)
        if not isinstance(raw, Mapping):
            raise Malformed("expected a dict")
        return raw


class Whole(dict[str, Any]):
    """A log configuration of uvicorn's (`log_config`): nothing is laid under it, as it is under gunicorn's."""


def accepts(function: AnyHook, arity: int) -> bool:
    """Whether `function` can be called with that many positional arguments."""
    import inspect  # only for hooks that are given

    try:
        inspect.signature(function).bind(*range(arity))
    except TypeError:
        return False
    except ValueError:
        return True  # a function written in C need not say what it takes
    return True


def _first_arguments(function: AnyHook, arity: int) -> AnyHook:
    @wraps(function, updated=())
    def shortened(*arguments: object) -> object:
        return function(*arguments[:arity])

    # Its signature is the one it is called with, so that it is taken for what it is when it is read again.
    vars(shortened).pop("__wrapped__", None)
    return shortened


def _import_object(dotted: str) -> object:
    module, _, name = dotted.strip().rpartition(".")
    if not module or not name:
        raise Malformed("expected a function or its dotted name, MODULE.FUNCTION")
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        raise Refused(f"the module {module!r} has no {name!r}") from None
    except Exception as error:
        raise Refused(f"the module {module!r} cannot be imported ({type(error).__name__}: {error})") from None


def import_class(who: str, dotted: str) -> object:
    """Imports what `module.Class` names. Raises ConfigError, whose sentence `who` begins."""
    module_name, dot, name = dotted.rpartition(".")
    if not dot or dotted.startswith("egg:"):
        raise ConfigError(f"{who} must be a dotted name, such as module.Class.")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise ConfigError(f"{who} cannot be imported: {type(error).__name__}: {error}.") from error
    try:
        return getattr(module, name)
    except AttributeError:
        meant = hint(name, vars(module), module_name + ".{}")
        raise ConfigError(f"{who} is not in its module{meant}") from None


MOST_ID = (1 << 32) - 2
"""The number after it means "no other one" to setuid(2) and chown(2)."""


def _identity(raw: object, what: str, by_name: Callable[[str], int], current: Callable[[], int]) -> int:
    if raw is None:
        return current()
    if isinstance(raw, int) and not isinstance(raw, bool):
        if raw < 0:
            raise Refused("expected at least 0")
        if raw > MOST_ID:
            raise Refused(f"expected at most {MOST_ID}")
        return raw
    name = Text().parse(raw)
    if name.isdigit():
        number = digits(name, MOST_ID)
        if number is None:
            raise Refused(f"expected at most {MOST_ID}")
        return number
    try:
        return by_name(name)
    except KeyError:
        raise Refused(f"this machine has no {what} of that name") from None


def _json(text: str) -> object:
    import json

    try:
        return json.loads(text)
    except ValueError:
        raise Malformed("expected a dict, or JSON text of one") from None
