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
        (Wsgi, False),
        (print, False),
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
def test_frameworks(module: str, name: str, interface: str) -> None:
    made = getattr(pytest.importorskip(module), name)
    arguments = {"Flask": [__name__], "Quart": [__name__], "RuleRouter": [[]], "WSGIContainer": [wsgi]}.get(name, [])
    assert interfaces.interface_of(made(*arguments)) == interface


@pytest.mark.parametrize("worker_class", ["sync", "gthread", "gevent", "eventlet", "tornado", "aiohttp"])
def test_an_asgi_application_under_another_class(worker_class: str) -> None:
    with pytest.raises(AppImportError) as caught:
        interfaces.check(asgi, "shop:app", worker_class)
    assert str(caught.value) == (
        f"'shop:app' is an ASGI application, which the worker class {worker_class!r} does not serve: "
        "ask for it with --worker-class asgi."
    )


def test_a_wsgi_application_under_another_class() -> None:
    for alias in ("sync", "gthread", "gevent", "eventlet", "tornado"):
        interfaces.check(wsgi, "shop:app", alias)
    for alias in ("asgi", "aiohttp"):
        with pytest.raises(
            AppImportError, match=r"'shop:app' is a WSGI application.*ask for it with --worker-class sync"
        ):
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
