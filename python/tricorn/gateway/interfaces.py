"""Which interface an application was written for, told from its type and from how it may be called.

Only what is clear is told: what could be written for several interfaces is taken for what the worker class calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tricorn.config.settings.processes import AUTO, HOSTED
from tricorn.errors import AppImportError


def check(application: object, uri: str, worker_class: str) -> None:
    """Raises AppImportError, which names the class to ask for, if this one cannot call the application."""
    interface = interface_of(application)
    if interface is None or worker_class in (AUTO, HOSTED) or worker_class in _SERVED_BY[interface]:
        return
    ask = _SERVED_BY[interface][0]
    raise AppImportError(
        f"{uri!r} is {_ARTICLE[interface]} {interface} application, which the worker class {worker_class!r} does not "
        f"serve: ask for it with --worker-class {ask}."
    )


def class_for(application: object, uri: str) -> tuple[str, str]:
    """The worker class that `auto` means for this application, and why, as half a sentence."""
    interface = interface_of(application)
    if interface is None:
        return _SERVED_BY["WSGI"][0], f"auto: the type of {uri!r} does not tell its interface, and WSGI is assumed"
    return _SERVED_BY[interface][0], f"auto: {uri!r} is {_ARTICLE[interface]} {interface} application"


def interface_of(application: object) -> str | None:
    """`WSGI`, `ASGI`, `tornado` or `aiohttp`; None if that is not clear. Imports nothing and calls nothing."""
    for base in type(application).__mro__:
        if interface := _BASES.get((base.__module__, base.__name__)):
            return interface
    if not callable(application):
        return None
    if _is_async(application):
        if _takes(application, 3):
            return "ASGI"
        return "aiohttp" if _takes(application, 0) else None
    if _required(application) == _ASGI_NAMES:
        return "ASGI"  # a function that gives its arguments on
    return "WSGI" if _takes(application, 2) and not _takes(application, 3) else None


def is_factory(found: object) -> bool:
    """Whether it can only be meant to be called without arguments, and to return the application."""
    if not inspect.isfunction(found) or inspect.iscoroutinefunction(found):  # aiohttp's are coroutine functions
        return False
    return _takes(found, 0) and all(each.kind is not each.VAR_POSITIONAL for each in _parameters(found))


def _is_async(application: Callable[..., Any]) -> bool:
    if inspect.iscoroutinefunction(application):
        return True
    return not inspect.isclass(application) and inspect.iscoroutinefunction(getattr(application, "__call__", None))  # noqa: B004


def _takes(application: Callable[..., Any], count: int) -> bool:
    """Whether it may be called with `count` positional arguments."""
    try:
        inspect.signature(application).bind(*(None,) * count)
    except (TypeError, ValueError, NameError):  # also: without a signature, as functions in C are
        return False
    return True


def _required(application: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arguments that it must be given."""
    required = (each for each in _parameters(application) if each.default is each.empty)
    return tuple(each.name for each in required if each.kind in _POSITIONAL)


def _parameters(application: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    try:
        return tuple(inspect.signature(application).parameters.values())
    except (TypeError, ValueError, NameError):
        return ()


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

_ASGI_NAMES = ("scope", "receive", "send")

_BASES = {
    ("tornado.httputil", "HTTPServerConnectionDelegate"): "tornado",
    ("tornado.wsgi", "WSGIContainer"): "tornado",
    ("aiohttp.web_app", "Application"): "aiohttp",
}

_SERVED_BY = {
    "WSGI": ("sync", "gthread", "gevent", "eventlet", "tornado"),
    "ASGI": ("asgi",),
    "tornado": ("tornado",),
    "aiohttp": ("aiohttp",),
}
"""The classes that serve an interface; the first is the one to ask for."""

_ARTICLE = {"WSGI": "a", "ASGI": "an", "tornado": "a", "aiohttp": "an"}
