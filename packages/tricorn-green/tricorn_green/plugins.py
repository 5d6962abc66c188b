"""Entry points of gevent's plugins, for which it asks `importlib.metadata` 25 times while it patches.

That looks at each installed package each time, and its import brings email, csv, zipfile and almost fifty others. Here
the packages are looked at once, and only their file `entry_points.txt` (Python Packaging User Guide, "Entry points
specification"). What the arbiter has found holds in its workers.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

_GROUPS = "gevent."
"""How the names of the groups begin that gevent asks for."""

_BESIDE = (".dist-info", ".egg-info")
"""Ends of names of directories beside a package that tell of it."""


class Plugin(NamedTuple):
    """The part of `importlib.metadata.EntryPoint` that gevent uses."""

    group: str
    value: str
    """`module:object.attribute`, and extras in brackets, which are for an installer."""

    def load(self) -> Any:
        module, _, attributes = self.value.partition("[")[0].strip().partition(":")
        return reduce(getattr, filter(None, attributes.split(".")), importlib.import_module(module))


class Metadata:
    """Stand-in for `importlib.metadata`: answers that one question, and passes all others on."""

    def entry_points(self, **which: str) -> Any:
        if not which.get("group", "").startswith(_GROUPS):
            return _module().entry_points(**which)
        return [plugin for plugin in look() if plugin.group == which["group"]]

    def __getattr__(self, name: str) -> Any:
        return getattr(_module(), name)


def look() -> Sequence[Any]:
    """The plugins: each has a `group` and can be loaded."""
    global _found
    if _found is None or _found[0] != sys.path:
        read = _read()
        _found = [*sys.path], _ask() if read is None else read
    return _found[1]


_found: tuple[list[str], Sequence[Any]] | None = None
"""With the path on which they were found."""


def _module() -> Any:
    return importlib.import_module("importlib.metadata")


def _ask() -> Sequence[Any]:
    found = _module().entry_points()
    return [each for group in found.groups if group.startswith(_GROUPS) for each in found.select(group=group)]


def _read() -> Sequence[Plugin] | None:
    """None if packages are found in other ways than as directories of the path, or one cannot be read."""
    others = [finder for finder in sys.meta_path if getattr(finder, "__name__", None) != "PathFinder"]
    if any(hasattr(finder, "find_distributions") for finder in others):
        return None
    texts: dict[str, str] = {}
    try:
        for name, folder in _packages():
            if name not in texts:  # else it is hidden by one of the same name before it in the path
                texts[name] = _text(os.path.join(folder, "entry_points.txt"))
    except (OSError, UnicodeError):  # an archive in the path, too
        return None
    return [plugin for text in texts.values() if _GROUPS in text for plugin in _plugins(text)]


def _packages() -> Iterator[tuple[str, str]]:
    """Name and directory of what tells of each package. Raises OSError if a part of the path is no directory."""
    for part in sys.path:
        try:
            names = os.listdir(part or ".")
        except FileNotFoundError:
            continue
        for name in names:
            if name.lower().endswith(_BESIDE):
                yield _normalized(name), os.path.join(part, name)
            elif name.upper() == "EGG-INFO":
                yield _normalized(os.path.basename(part)), os.path.join(part, name)


def _normalized(name: str) -> str:
    """`PyYAML-6.0.dist-info` is of `pyyaml`."""
    return name.rpartition(".")[0].partition("-")[0].lower().replace(".", "_")


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):  # `.egg-info` may be a file, too, that tells of nothing else
        return ""


def _plugins(text: str) -> Iterator[Plugin]:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[] ")
        elif group.startswith(_GROUPS) and "=" in line and not line.startswith(("#", ";")):
            yield Plugin(group, line.partition("=")[2].strip())
