"""Which interface an application was written for."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tricorn.errors import AppImportError
from tricorn.gateway import interfaces


async def asgi(scope, receive, send): ...


async def asgi_with_more(scope, receive, send, extra=None): ...


def asgi_given_on(scope, receive, send):
    return asgi(scope, receive, send)


def wsgi(environ, start_response): ...


def wsgi_with_more(environ, start_response, exc_info=None, extra=None): ...


def anything(*arguments): ...


def wsgi_with_defaults(environ=None, start_response=None): ...


def asgi_with_defaults(scope=None, receive=None, send=None): ...


async def factory(): ...


async def listener(one, two): ...


class Asgi:
    async def __call__(self, scope, receive, send): ...


class AsgiInside(Asgi):
    def other(self): ...


class Wsgi:
    def __call__(self, environ, start_response): ...


class WsgiEach:
    def __init__(self, environ, start_response): ...


class AsgiEach:
    def __init__(self, scope, receive, send): ...

    def __await__(self): ...


@pytest.mark.parametrize(
    ("application", "interface"),
    [
        (asgi, "ASGI"),
        (asgi_with_more, "ASGI"),
        (asgi_given_on, "ASGI"),
        (asgi_with_defaults, "ASGI"),
        (wsgi_with_defaults, "WSGI"),
        (Asgi(), "ASGI"),
        (AsgiInside(), "ASGI"),
        (Asgi().__call__, "ASGI"),
        (AsgiEach, "ASGI"),
        (functools.partial(asgi_with_more, extra=1), "ASGI"),
        (functools.partial(lambda one, scope, receive, send: None, 1), "ASGI"),
        (wsgi, "WSGI"),
        (Wsgi(), "WSGI"),
        (Wsgi().__call__, "WSGI"),
        (WsgiEach, "WSGI"),
        (functools.partial(lambda one, environ, start_response: None, 1), "WSGI"),
        (factory, "aiohttp"),
        (wsgi_with_more, None),
        (anything, None),
        (listener, None),
        (print, None),
        (dict, None),
        (5, None),
    ],
)
def test_what_is_clear_is_told(application: Any, interface: str | None) -> None:
    assert interfaces.interface_of(application) == interface


def no_arguments(): ...


def all_have_defaults(config=None, testing=False, **more): ...


def many_defaults(path=None, middleware=None, stateless=None, transport="http"): ...


async def async_maker(): ...


class Maker:
    def __call__(self): ...

    def make(self, config=None): ...

    @classmethod
    def make_by_class(cls): ...


@functools.wraps(no_arguments)
def decorated(*arguments, **named): ...


@pytest.mark.parametrize(
    ("worker_class", "found", "expected"),
    [
        ("sync", no_arguments, True),
        ("sync", all_have_defaults, False),
        ("asgi", all_have_defaults, True),
        ("aiohttp", all_have_defaults, True),
        ("tornado", all_have_defaults, False),
        ("sync", many_defaults, True),
        ("asgi", many_defaults, True),
        ("gthread", wsgi_with_defaults, False),
        ("asgi", asgi_with_defaults, False),
        ("asgi", wsgi_with_defaults, False),
        ("sync", asgi_with_defaults, False),
        ("sync", lambda environ="production": None, True),
        ("sync", Maker().make, True),
        ("sync", Wsgi, True),
        ("sync", anything, False),
    ],
)
def test_where_a_class_is_named_what_it_could_call_is_no_factory(worker_class: str, found: Any, expected: bool) -> None:
    assert interfaces.is_factory(found, worker_class) is expected


def takes_one(request): ...


@functools.wraps(takes_one)
def shown_as_taking_one(*arguments): ...


@pytest.mark.parametrize("worker_class", ["auto", "sync", "asgi", "tornado"])
def test_what_no_interface_calls_is_refused_with_its_arguments(worker_class: str) -> None:
    with pytest.raises(AppImportError) as caught:
        interfaces.check(takes_one, "shop:app", worker_class)
    assert str(caught.value) == (
        "'shop:app' is not an application: it takes (request). A WSGI application is called with (environ, "
        "start_response), and one of ASGI with (scope, receive, send)."
    )
    for application in (shown_as_taking_one, anything, print, dict):  # werkzeug's decorator is one of the first kind
        interfaces.check(application, "shop:app", worker_class)


@pytest.mark.parametrize("worker_class", ["sync", "asgi", "tornado"])
def test_a_coroutine_function_that_no_class_but_one_awaits(worker_class: str) -> None:
    with pytest.raises(AppImportError, match=r"'shop:make' is a coroutine function.*Make it a plain function"):
        interfaces.check(async_maker, "shop:make", worker_class)
    interfaces.check(async_maker, "shop:make", "aiohttp")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (no_arguments, True),
        (all_have_defaults, True),
        (wsgi, False),
        (wsgi_with_more, False),
        (asgi_given_on, False),
        (anything, False),
        (factory, False),
        (lambda *, app: None, False),
        (Wsgi, True),
        (Asgi, True),
        (WsgiEach, False),
        (AsgiEach, False),
        (functools.partial(all_have_defaults, testing=True), True),
        (functools.partial(wsgi, start_response=None), False),
        (Maker(), True),
        (Maker().make, True),
        (Maker.make_by_class, True),
        (Wsgi(), False),
        (Wsgi().__call__, False),
        (decorated, True),
        (wsgi_with_defaults, False),
        (asgi_with_defaults, False),
        (async_maker, False),
        ("text".upper, False),
        (print, False),
        (5, False),
    ],
)
def test_what_is_called_without_arguments_is_a_factory(found: Any, expected: bool) -> None:
    assert interfaces.is_factory(found) is expected


@pytest.mark.parametrize(
    ("module", "name", "interface"),
    [
        ("starlette.applications", "Starlette", "ASGI"),
        ("fastapi", "FastAPI", "ASGI"),
        ("litestar", "Litestar", "ASGI"),
        ("flask", "Flask", "WSGI"),
        ("quart", "Quart", "ASGI"),
        ("tornado.web", "Application", "tornado"),
        ("tornado.routing", "RuleRouter", "tornado"),
        ("tornado.wsgi", "WSGIContainer", "tornado"),
        ("aiohttp.web", "Application", "aiohttp"),
    ],
)
def test_interface_of_frameworks(module: str, name: str, interface: str) -> None:
    made = getattr(pytest.importorskip(module), name)
    arguments = {"Flask": [__name__], "Quart": [__name__], "RuleRouter": [[]], "WSGIContainer": [wsgi]}.get(name, [])
    application = made(*arguments)
    assert interfaces.interface_of(application) == interface
    assert interfaces.is_application(application)
    assert not interfaces.is_factory(application, "sync")


@pytest.mark.parametrize("worker_class", ["sync", "gthread", "gevent", "eventlet", "tornado", "aiohttp"])
def test_an_asgi_application_under_another_class(worker_class: str) -> None:
    with pytest.raises(AppImportError) as caught:
        interfaces.check(asgi, "shop:app", worker_class)
    assert str(caught.value) == (
        f"'shop:app' is an ASGI application, which the worker class {worker_class!r} cannot run. "
        "Use --worker-class asgi, or remove the setting."
    )


def test_a_wsgi_application_under_another_class() -> None:
    for alias in ("sync", "gthread", "gevent", "eventlet", "tornado"):
        interfaces.check(wsgi, "shop:app", alias)
    for alias in ("asgi", "aiohttp"):
        with pytest.raises(AppImportError, match=r"'shop:app' is a WSGI application.*Use --worker-class sync"):
            interfaces.check(wsgi, "shop:app", alias)


def test_the_class_that_auto_means() -> None:
    assert interfaces.class_for(wsgi, "shop:app") == ("sync", "auto: 'shop:app' is a WSGI application")
    assert interfaces.class_for(asgi, "shop:app") == ("asgi", "auto: 'shop:app' is an ASGI application")
    chosen, reason = interfaces.class_for(anything, "shop:app")
    assert (chosen, "WSGI is assumed" in reason) == ("sync", True)
    interfaces.check(asgi, "shop:app", "auto")


def test_what_is_not_clear_is_taken() -> None:
    for alias in ("sync", "asgi", "tornado", "aiohttp"):
        interfaces.check(anything, "shop:app", alias)
