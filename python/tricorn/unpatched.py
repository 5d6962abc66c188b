"""Modules of the standard library as they were before greenlets came: what the server itself calls.

Monkey-patching changes `os`, `time`, `socket` and others for the whole process. The arbiter has no hub that could wake
a greenlet, and a real thread of the server must not enter the worker's. So whatever of the server calls something that
may be patched imports it from here:

    from tricorn.unpatched import os, time

Each is a copy of the module, made when the server starts. What is in it is the same as in the module, so that
`isinstance` and constants agree, except that functions written in Python look up the copy's names and not the patched
ones.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import _thread
    import os
    import select
    import signal
    import socket
    import time

__all__ = ["_thread", "os", "select", "signal", "socket", "time"]


def _as_it_was(name: str) -> ModuleType:
    """A copy of the module `name`; of the original if it was patched before the server was imported."""
    patcher: Any = sys.modules.get("eventlet.patcher")
    module = patcher.original(name) if patcher is not None and patcher.already_patched else import_module(name)
    copy = ModuleType(name, module.__doc__)
    names = vars(copy)
    names.update(vars(module))
    names.update(getattr(sys.modules.get("gevent.monkey"), "saved", {}).get(name, {}))
    for key, value in list(names.items()):
        if isinstance(value, FunctionType) and value.__globals__ is vars(module):
            names[key] = _in(names, value)
    return copy


def _in(names: dict[str, Any], function: FunctionType) -> FunctionType:
    """`function` with other globals."""
    made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__doc__ = function.__doc__
    return made


globals().update({name: _as_it_was(name) for name in __all__})
