"""Under which name prometheus_client keeps what a process counts.

The library asks a function for it whenever it counts, and begins other files when the answer has changed: after a fork.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tricorn import import_hooks
from tricorn.unpatched import os

MODULE = "prometheus_client.values"
CHECK = "_MmapedValue__check_for_pid_change"


class Identity:
    """The library's `process_identifier`."""

    def __init__(self, name: str) -> None:
        """`name` is this process's."""
        self.become(name)

    def become(self, name: str) -> None:
        """Takes this name, in a process that was just forked."""
        self._pid = os.getpid()
        self._name = name

    def __call__(self) -> str:
        """A process that the application has forked counts in files of its own: two must not write to the same."""
        pid = os.getpid()
        return self._name if pid == self._pid else str(pid)


def install(identity: Identity) -> None:
    """Names values by the identity, unless the application has a naming of its own."""

    def name_values(module: ModuleType) -> None:
        values: Any = module
        if _is_default(values):
            values.ValueClass = values.MultiProcessValue(process_identifier=identity)

    import_hooks.after("metrics", {MODULE: name_values})


def begin_files() -> None:
    """Has the library begin the files of the present name now. Else it does when it counts, and may find no change."""
    values: Any = sys.modules.get(MODULE)
    check = None if values is None else vars(values.ValueClass).get(CHECK)
    if check is not None:
        check(None)  # it looks at the name, and at all values


def _is_default(values: Any) -> bool:
    """Whether values are as the library makes them by itself: named by pid, or without files."""
    known = values.ValueClass
    if known is values.MutexValue:
        return True
    check = vars(known).get(CHECK)
    if check is None or not check.__closure__:
        return False
    cells = dict(zip(check.__code__.co_freevars, check.__closure__, strict=True))
    identifier = cells.get("process_identifier")
    return identifier is not None and identifier.cell_contents is values.os.getpid
