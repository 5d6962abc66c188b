"""Which interface an application was written for, told from its type and from how it may be called.

Only what is clear is told: what could be written for several interfaces is taken for what the worker class calls. What
no interface calls is no application: it may be a factory, or have a method that makes one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tricorn.config.settings.processes import AUTO, HOSTED
from tricorn.errors import AppImportError


def check(application: object, uri: str, worker_class: str) -> None:
    """Raises AppImportError if this class cannot call the application: it names the one that can, or what is wrong."""
    interface = interface_of(application)
    if interface is None:
        counts = _counts(worker_class)
        if callable(application) and counts and not any(_may_take(application, count) for count in counts):
            raise AppImportError(f"{uri!r} is not an application: it takes {_shown(application)}. {_EXPECTED}")
        return
    if worker_class in (AUTO, HOSTED) or worker_class in _SERVED_BY[interface]:
        return
    if inspect.iscoroutinefunction(application) and interface == "aiohttp":
        raise AppImportError(
            f"{uri!r} is a coroutine function, and the worker class {worker_class!r} does not await factories. Make "
            "it a plain function that returns the application."
        )
    ask = _SERVED_BY[interface][0]
    raise AppImportError(
        f"{uri!r} is {_ARTICLE[interface]} {interface} application, which the worker class {worker_class!r} cannot "
        f"run. Use --worker-class {ask}, or remove the setting."
    )


def class_for(application: object, uri: str) -> tuple[str, str]:
    """The worker class that `auto` means for this application, and why, as half a sentence."""
    interface = interface_of(application)
    if interface is None:
        return _SERVED_BY["WSGI"][0], f"auto: the type of {uri!r} does not tell its interface, and WSGI is assumed"
    return _SERVED_BY[interface][0], f"auto: {uri!r} is {_ARTICLE[interface]} {interface} application"


def interface_of(application: object) -> str | None:
    """`WSGI`, `ASGI`, `tornado` or `aiohttp`; None if that is not clear. Imports nothing and calls nothing."""
    if interface := _interface_of_instances(type(application)):
        return interface
    if not callable(application):
        return None
    if _is_async(application):
        if _takes(application, 3):
            return "ASGI"
        return "aiohttp" if _takes(application, 0) else None
    if _names(application)[: len(_ASGI_NAMES)] == _ASGI_NAMES:
        return "ASGI"  # a function that gives its arguments on
    return "WSGI" if _takes(application, 2) and not _takes(application, 3) else None


def is_factory(found: object, worker_class: str = AUTO) -> bool:
    """Whether it is meant to be called without arguments, and to return the application.

    A function, method, partial or object is, if it can be called so and not as an application. Where all parameters
    have defaults both may be possible (`might_be_application`): then their names tell, or that a worker class is named.
    A class is a factory if its instances are applications.
    """
    if not callable(found) or not _is_python(found) or _is_async(found) or not _takes(found, 0):
        return False
    if _interface_of_instances(type(found)) is not None:  # aiohttp's return themselves
        return False
    if inspect.isclass(found):
        has_call = any("__call__" in vars(base) for base in found.__mro__)
        return has_call or _interface_of_instances(found) is not None
    parameters = _parameters(found)
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return False
    positional = _names(found)
    if might_be_application(found) and not _NAMES.isdisjoint(positional):
        return False  # if it is for another class, that is told
    is_called = might_be_application(found, worker_class)
    return not is_called or worker_class == AUTO or len(positional) not in _counts(worker_class)


def is_application(found: object, worker_class: str = AUTO) -> bool:
    """Whether it is called for each request, as it is."""
    return (callable(found) or interface_of(found) is not None) and not is_factory(found, worker_class)


def might_be_application(found: Callable[..., Any], worker_class: str = AUTO) -> bool:
    """Whether a worker of this class could call it as an application."""
    return not inspect.isclass(found) and any(_takes(found, count) for count in _counts(worker_class))


def name_of(application: object) -> str:
    """`module:attribute` of what the application is, or of its class if it has no name."""
    named = application if hasattr(application, "__qualname__") else type(application)
    return f"{named.__module__}:{named.__qualname__}"


def application_in(found: object) -> Callable[..., Any] | None:
    """Returns the method or attribute that gives the application of an object that is none itself."""
    if callable(found) or interface_of(found) is not None:
        return None
    methods = (getattr(found, name, None) for name in _METHODS)
    return next((method for method in methods if callable(method)), None)


def _counts(worker_class: str) -> tuple[int, ...]:
    """How many arguments applications are called with that a worker of this class may serve."""
    if worker_class in (AUTO, HOSTED):
        return WSGI_ARGUMENTS, ASGI_ARGUMENTS
    if worker_class in _SERVED_BY["ASGI"]:
        return (ASGI_ARGUMENTS,)
    return (WSGI_ARGUMENTS,) if worker_class in _SERVED_BY["WSGI"] else ()


def _is_python(found: Callable[..., Any]) -> bool:
    """Whether its code is Python's: what C functions may be called with says little of what they are for."""
    if inspect.isclass(found) or inspect.isfunction(found) or inspect.ismethod(found):
        return True
    return isinstance(found, functools.partial) or inspect.isfunction(getattr(type(found), "__call__", None))  # noqa: B004


def _interface_of_instances(kind: type) -> str | None:
    """The interface of a framework's own class."""
    names = ((base.__module__, base.__name__) for base in kind.__mro__)
    return next((_BASES[name] for name in names if name in _BASES), None)


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


def _may_take(application: Callable[..., Any], count: int) -> bool:
    """The same, in doubt: a decorator that shows the signature of what it decorates may take other arguments itself."""
    try:
        own = inspect.signature(application, follow_wrapped=False)
    except (TypeError, ValueError, NameError):
        return True
    try:
        own.bind(*(None,) * count)
    except TypeError:
        return _takes(application, count)
    return True


def _names(application: Callable[..., Any]) -> tuple[str, ...]:
    """The names of its positional parameters."""
    return tuple(each.name for each in _parameters(application) if each.kind in _POSITIONAL)


def _shown(application: Callable[..., Any]) -> str:
    names = ", ".join(str(each.replace(annotation=each.empty)) for each in _parameters(application))
    return f"({names})"


def _parameters(application: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    try:
        return tuple(inspect.signature(application).parameters.values())
    except (TypeError, ValueError, NameError):
        return ()


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

_ASGI_NAMES = ("scope", "receive", "send")
_NAMES = frozenset(("environ", "start_response", *_ASGI_NAMES))
"""How parameters of applications are called by all who have written about them."""

WSGI_ARGUMENTS, ASGI_ARGUMENTS = 2, 3

_EXPECTED = "A WSGI application is called with (environ, start_response), and one of ASGI with (scope, receive, send)."

_METHODS = ("http_app", "streamable_http_app", "asgi_app", "wsgi_app")
"""Methods and attributes that give the application of an object that is none itself. The first two are FastMCP's."""

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
