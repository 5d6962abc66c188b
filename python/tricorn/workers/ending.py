"""The end of a process in which threads are still inside the application."""

from __future__ import annotations

import atexit
import sys
import threading
from contextlib import suppress
from types import ModuleType
from typing import NoReturn

from tricorn.unpatched import os


def end_process(status: int) -> NoReturn:
    """Does what the interpreter does at its end, except to take itself down under threads that run.

    Until 3.13 CPython ends such threads by pthread_exit(3) as soon as they ask for the GIL. Its unwinding meets the
    frames of the core, which catch it, and glibc aborts the process: "FATAL: exception not rethrown".
    """
    # In the interpreter's order (Py_FinalizeEx). Both are private names; a Python without them has nothing to run.
    _call(threading, "_shutdown")
    _call(atexit, "_run_exitfuncs")
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # closed, or None
            stream.flush()
    os._exit(status)


def _call(module: ModuleType, name: str) -> None:
    function = getattr(module, name, None)
    if function is not None:
        try:
            function()
        except BaseException:  # as the interpreter does: told, and the next one follows
            sys.excepthook(*sys.exc_info())
