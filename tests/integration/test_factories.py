"""What is named on the command line may be the application, or what makes it; what is neither ends the start."""

from __future__ import annotations

import pytest

from tests.harness import Site
from tests.harness.classes import each

pytestmark = pytest.mark.beyond_reference("factories have brackets there")

MODULE = """
import functools

def wsgi(environ=None, start_response=None):
    start_response("200 OK", [("Content-Length", "4")])
    return [b"wsgi"]

async def asgi(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"asgi"})

class Shop:
    def __init__(self, app=wsgi):
        self.app = app

    def make(self, debug=False):
        return self.app

    def __call__(self, environ, start_response):
        return self.app(environ, start_response)

class Server:  # as FastMCP's
    def http_app(self, path=None, middleware=None, json_response=None, transport="http"):
        return asgi

def configured(name, app): return app

shop, asgi_shop, server = Shop(), Shop(asgi), Server()
partial = functools.partial(configured, "shop", app=asgi)

def handler(request): ...
def one(request=None): ...
async def later(): return asgi
"""


def site(app: str, worker_class: str, **options: bool | str) -> Site:
    config = f"worker_class = {worker_class!r}\nasgi_lifespan = 'off'\n"
    return Site(config, app=app, files={"mine.py": MODULE}, fresh=True, **options)


@pytest.mark.parametrize(
    ("app", "worker_class", "body"),
    [
        ("mine:wsgi", "auto", b"wsgi"),
        *[("mine:wsgi", *value) for value in [("sync", b"wsgi"), ("gthread", b"wsgi")]],
        ("mine:shop.make", "auto", b"wsgi"),
        ("mine:shop.make", "gthread", b"wsgi"),
        ("mine:shop.make(debug=True)", "sync", b"wsgi"),
        ("mine:Shop", "auto", b"wsgi"),
        ("mine:asgi_shop.make", "auto", b"asgi"),
        ("mine:asgi_shop.make", "asgi", b"asgi"),
        ("mine:partial", "auto", b"asgi"),
        ("mine:server", "auto", b"asgi"),
        ("mine:server", "asgi", b"asgi"),
        ("mine:server.http_app", "asgi", b"asgi"),
        ("mine:server.http_app(path='/tools')", "auto", b"asgi"),
    ],
)
def test_application_of_a_factory_is_served(app: str, worker_class: str, body: bytes) -> None:
    with site(app, worker_class) as server:
        assert server.get("/").body == body


@pytest.mark.parametrize("worker_class", each("gevent", "eventlet", "tornado"))
def test_arguments_with_defaults_under_the_other_classes(worker_class: str) -> None:
    with site("mine:wsgi", worker_class) as server:
        assert server.get("/").body == b"wsgi"


@pytest.mark.parametrize(
    ("app", "worker_class", "words"),
    [
        ("mine:handler", "auto", "'mine:handler' is not an application: it takes (request). "),
        ("mine:handler", "sync", "'mine:handler' is not an application: it takes (request). "),
        ("mine:one", "auto", "Failed to find application object: 'one' has returned None."),
        ("mine:later()", "asgi", "'later()' has returned a coroutine: factories are not awaited."),
        ("mine:later", "asgi", "'mine:later' is a coroutine function"),
        ("mine:wsgi", "asgi", "'mine:wsgi' is a WSGI application, which the worker class 'asgi' cannot run"),
        ("mine:server", "sync", "'mine:server' is an ASGI application, which the worker class 'sync' cannot run"),
        ("mine:shop.make(colour='red')", "auto", "TypeError: Shop.make() got an unexpected keyword argument 'colour'"),
    ],
)
def test_what_is_none_ends_the_start_with_a_sentence(app: str, worker_class: str, words: str) -> None:
    with site(app, worker_class, wait=False) as server:
        assert server.wait_exit() == 4
        assert words in server.log.text
        assert "Traceback" not in server.log.text
