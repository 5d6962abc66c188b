"""Logging calls that do not raise.

A logger class of the user's, or a handler of a log configuration, may raise whenever the server logs: in the arbiter
that would end the service, in a worker a request or the worker. So each method that the server calls is guarded, and a
line that fails goes to stderr.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

from tricorn.log import configured, names
from tricorn.log.formats import Plain
from tricorn.log.stream import LogStream
from tricorn.log.targets import STDERR

LEVELS = {
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "exception": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "log": logging.INFO,
}
"""The methods that write a record, and the level of its line on stderr."""
OTHERS = ("write", "flush", "reopen_files", "change_level")

_SAFE = "_tricorn_safe"
"""The attribute of a method that is safe already."""
Method = TypeVar("Method", bound=Callable[..., Any])

_stderr = LogStream(STDERR, owned=False)
_plain = Plain(configured.FORMAT, configured.DATES)
_reported: set[tuple[str, str, type[Exception]]] = set()


def safe(method: Method) -> Method:
    """A method of a logger that does not raise."""

    @wraps(method)
    def call(self: object, *args: Any, **kwargs: Any) -> Any:
        handled = sys.exc_info()
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            name = method.__name__
            with suppress(Exception):
                _report(f"{type(self).__module__}.{type(self).__qualname__}", name, error)
                if name in LEVELS:
                    message = args[1:] if name == "log" else args
                    wants = name == "exception" or kwargs.get("exc_info")
                    _write(LEVELS[name], message[0], message[1:], handled if wants else None)
        return None

    setattr(call, _SAFE, True)
    return cast(Method, call)


def guard(kind: type[Any]) -> None:
    """Makes those methods safe that a subclass has overridden, or a class that it mixes in."""
    for name in (*LEVELS, *OTHERS):
        found = next(vars(each)[name] for each in kind.__mro__ if name in vars(each))
        if isinstance(found, FunctionType) and not hasattr(found, _SAFE):
            setattr(kind, name, safe(found))


def _report(kind: str, name: str, error: Exception) -> None:
    """Once for each kind of failure."""
    if (kind, name, type(error)) not in _reported:
        _reported.add((kind, name, type(error)))
        text = f"The logger {kind} failed in {name}(); the line goes to stderr."
        _write(logging.ERROR, text, (), (type(error), error, error.__traceback__))


def _write(level: int, message: object, args: tuple[object, ...], exc_info: Any) -> None:
    record = logging.LogRecord(names.ERROR, level, "", 0, message, args, exc_info)
    _stderr.write(_plain.format(record) + "\n")
