"""What frameworks leave of a request: its route, by a line of `tricorn.contrib.routes` or by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tricorn.contrib import routes

from tests.harness.cases import with_each

KEY = "tricorn.route"


def environ_of(application: Callable[..., Any], path: str) -> dict[str, Any]:
    from wsgiref.util import setup_testing_defaults

    environ: dict[str, Any] = {"PATH_INFO": path}
    setup_testing_defaults(environ)
    b"".join(application(environ, lambda status, headers, error=None: None))
    return environ


def scope_of(application: Callable[..., Any], path: str) -> dict[str, Any]:
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "scheme": "http",
        "headers": [(b"host", b"localhost")],
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
    }

    async def call() -> None:
        over = asyncio.Event()
        asked = False

        async def receive() -> dict[str, object]:
            nonlocal asked
            if asked:
                await over.wait()
                return {"type": "http.disconnect"}
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(event: dict[str, Any]) -> None:
            if event["type"] == "http.response.body" and not event.get("more_body"):
                over.set()

        await application(scope, receive, send)

    asyncio.run(call())
    return scope


def flask() -> Any:
    from flask import Flask

    application = Flask("shop")
    routes.flask(application)
    application.add_url_rule("/orders/<int:number>", "order", lambda number: "ok")
    return application


def bottle() -> Any:
    from bottle import Bottle

    application = Bottle()
    routes.bottle(application)
    application.route("/orders/<number:int>", callback=lambda number: "ok")
    return application


class Order:
    def on_get(self, req: Any, resp: Any, number: str) -> None:
        resp.text = "ok"


class AsyncOrder:
    async def on_get(self, req: Any, resp: Any, number: str) -> None:
        resp.text = "ok"


def falcon_wsgi() -> Any:
    import falcon

    application = falcon.App(middleware=[routes.Falcon()])
    application.add_route("/orders/{number}", Order())
    return application


def falcon_asgi() -> Any:
    import falcon.asgi

    application = falcon.asgi.App(middleware=[routes.Falcon()])
    application.add_route("/orders/{number}", AsyncOrder())
    return application


def django(kind: str) -> Any:
    import django
    from django.conf import settings

    if not settings.configured:
        settings.configure(ROOT_URLCONF=urls(), ALLOWED_HOSTS=["*"], MIDDLEWARE=["tricorn.contrib.routes.Django"])
        django.setup(set_prefix=False)
    if kind == "wsgi":
        from django.core.wsgi import get_wsgi_application

        return get_wsgi_application()
    from django.core.asgi import get_asgi_application

    return get_asgi_application()


def urls() -> ModuleType:
    from django.http import HttpResponse
    from django.urls import path

    module: Any = ModuleType("urls")
    module.urlpatterns = [path("orders/<int:number>", lambda request, number: HttpResponse("ok"))]
    return module  # type: ignore[no-any-return]


def quart() -> Any:
    from quart import Quart

    application = Quart("shop")
    routes.quart(application)

    async def order(number: int) -> str:
        return "ok"

    application.add_url_rule("/orders/<int:number>", "order", order)
    return application


WSGI: dict[str, tuple[Callable[[], Any], str]] = {
    "flask": (flask, "/orders/<int:number>"),
    "bottle": (bottle, "/orders/<number:int>"),
    "falcon": (falcon_wsgi, "/orders/{number}"),
    "django": (lambda: django("wsgi"), "/orders/<int:number>"),
}
ASGI: dict[str, tuple[Callable[[], Any], str]] = {
    "falcon": (falcon_asgi, "/orders/{number}"),
    "django": (lambda: django("asgi"), "/orders/<int:number>"),
    "quart": (quart, "/orders/<int:number>"),
}


@with_each("case", WSGI.values())
def test_a_line_has_a_wsgi_framework_tell_its_route(case: tuple[Callable[[], Any], str]) -> None:
    make, route = case
    application = make()
    assert environ_of(application, "/orders/4711")[KEY] == route
    assert KEY not in environ_of(application, "/nowhere/4711"), "where no route is"


@with_each("case", ASGI.values())
def test_a_line_has_an_asgi_framework_tell_its_route(case: tuple[Callable[[], Any], str]) -> None:
    make, route = case
    application = make()
    assert scope_of(application, "/orders/4711")[KEY] == route
    assert KEY not in scope_of(application, "/nowhere/4711"), "where no route is"


def test_some_frameworks_tell_it_by_themselves() -> None:
    from litestar import Litestar, get
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    @get("/orders/{number:int}")
    async def order() -> str:
        return "ok"

    litestar = Litestar([order])
    assert scope_of(litestar, "/orders/4711")["path_template"] == "/orders/{number}"
    assert "path_template" not in scope_of(litestar, "/nowhere/4711")
    starlette = Starlette(routes=[Route("/orders/{number}", lambda request: PlainTextResponse("ok"))])
    assert scope_of(starlette, "/orders/4711")["route"].path == "/orders/{number}"
