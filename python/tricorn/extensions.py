"""Commands, worker classes and modules that other distributions add, found by their entry points.

    tricorn.commands         `tricorn NAME …`: a function that takes the words after NAME and returns an exit status
    tricorn.worker_classes   `-k NAME`: a class derived from one of tricorn's
    tricorn.modules          a module that is imported by its public name, `from tricorn.NAME import …`
    tricorn.advice           a function that says what to do about a library that blocked a worker of the class NAME

The server imports no other distribution. It knows what tricorn's own distributions add, so that it can name the one
that is missing, and reads their entry points itself: `importlib.metadata` takes longer to import than the server does.
It is asked about names that are not known.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tricorn.errors import ConfigError
from tricorn.record import Record

COMMANDS = "tricorn.commands"
WORKER_CLASSES = "tricorn.worker_classes"
MODULES = "tricorn.modules"
ADVICE = "tricorn.advice"


class Distribution(Record):
    name: str
    requirement: str
    """Requirement to install, as pip takes it."""


GREEN = Distribution("tricorn-green", "tricorn-green")
GEVENT = Distribution("tricorn-green", "'tricorn[gevent]'")
EVENTLET = Distribution("tricorn-green", "'tricorn[eventlet]'")
BENCH = Distribution("tricorn-bench", "'tricorn[bench]'")
TOOLS = Distribution("tricorn-tools", "'tricorn[tools]'")

OWN: dict[str, dict[str, Distribution]] = {
    COMMANDS: {
        "bench": BENCH,
        "dev-cert": TOOLS,
        "doctor": TOOLS,
        "init": TOOLS,
        "load": BENCH,
        "top": TOOLS,
        "tune": BENCH,
    },
    WORKER_CLASSES: {"gevent": GEVENT, "eventlet": EVENTLET},
    MODULES: {"load": BENCH, "offloading": GREEN, "workers.green": GEVENT, "workers.gevent_websocket": GEVENT},
    ADVICE: {"gevent": GEVENT, "eventlet": EVENTLET},
}
"""Additions of tricorn's own distributions."""


class NotInstalled(ConfigError, ImportError):
    """A name belongs to a distribution of tricorn's that is not installed."""

    def __init__(self, who: str, distribution: Distribution) -> None:
        super().__init__(
            f"{who} needs {distribution.name}, which is not installed: pip install {distribution.requirement}"
        )


def load(group: str, name: str, who: str) -> Any:
    """Imports and returns the object that the entry point `name` of a group names.

    Raises NotInstalled with `who` as its subject, LookupError for a name that no distribution has.
    """
    target = find(group, name)
    if target is None:
        if own := OWN[group].get(name):
            raise NotInstalled(who, own)
        raise LookupError(name)
    module, _, attribute = target.partition(":")
    found: Any = import_module(module)
    return getattr(found, attribute) if attribute else found


def module(name: str) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a module `tricorn.NAME` whose contents another distribution has."""

    def attribute(of: str) -> Any:
        if of.startswith("__"):  # asked by the import system, which takes no other exception
            raise AttributeError(of)
        return getattr(load(MODULES, name, f"tricorn.{name}"), of)

    return attribute


def find(group: str, name: str) -> str | None:
    """Returns `module` or `module:attribute`, None if no installed distribution has the entry point."""
    if (group, name) not in _found:
        own = OWN[group].get(name)
        _found[group, name] = _search(group, name) if own is None else _read(own.name, group).get(name)
    return _found[group, name]


_found: dict[tuple[str, str], str | None] = {}
"""The answers so far: what is installed does not change under a running server."""


def _search(group: str, name: str) -> str | None:
    from importlib import metadata

    return next((each.value for each in metadata.entry_points(group=group, name=name)), None)


def _read(distribution: str, group: str) -> dict[str, str]:
    """Returns a group of entry points of a distribution (PyPA specifications, "Entry points", "Recording installed
    projects")."""
    prefix, suffix = f"{distribution.replace('-', '_')}-", ".dist-info"
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith(prefix) and name.endswith(suffix):
                with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                    return _section(file.read(), group)
    return {}


def _section(text: str, group: str) -> dict[str, str]:
    found: dict[str, str] = {}
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == group and "=" in line:
            name, _, value = line.partition("=")
            found[name.strip()] = value.strip()
    return found
