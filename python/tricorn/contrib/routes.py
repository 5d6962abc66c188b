"""Route names for `route_metrics`, for frameworks that do not report the route of a request themselves.

| Framework | |
|---|---|
| Flask | `tricorn.contrib.routes.flask(app)` |
| Quart | `tricorn.contrib.routes.quart(app)` |
| Bottle | `tricorn.contrib.routes.bottle(app)` |
| Django | `MIDDLEWARE = ["tricorn.contrib.routes.Django", …]` |
| Falcon | `falcon.App(middleware=[tricorn.contrib.routes.Falcon()])`, `falcon.asgi.App` likewise |

Other applications set `environ["tricorn.route"] = "/orders/{id}"`, or the same key of the ASGI scope, at any time
before the response is complete.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

KEY = "tricorn.route"


def flask(application: Any) -> None:
    """Reports routes of a `flask.Flask`. Call it before the first request."""
    from flask import request

    def tell(endpoint: str | None, values: dict[str, Any] | None) -> None:
        if request.url_rule is not None:
            request.environ[KEY] = request.url_rule.rule

    application.url_value_preprocessor(tell)


def quart(application: Any) -> None:
    """Reports routes of a `quart.Quart`. Call it before the first request."""
    from quart import request

    def tell(endpoint: str | None, values: dict[str, Any] | None) -> None:
        if request.url_rule is not None:
            request.scope[KEY] = request.url_rule.rule  # type: ignore[literal-required]

    application.url_value_preprocessor(tell)


def bottle(application: Any) -> None:
    """Reports routes of a `bottle.Bottle`; pass `bottle.default_app()` for the default application."""
    from bottle import request  # type: ignore[import-untyped]

    def tell() -> None:
        route = request.environ.get("bottle.route")
        if route is not None:
            request.environ[KEY] = route.rule

    application.add_hook("after_request", tell)


class Django:
    """Middleware that reports routes of Django, for WSGI and ASGI."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self.get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            from asgiref.sync import markcoroutinefunction

            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        if self._is_async:
            return self._answer(request)
        response = self.get_response(request)
        self._tell(request)
        return response

    def _answer(self, request: Any) -> Awaitable[Any]:
        async def answer() -> Any:
            response = await self.get_response(request)
            self._tell(request)
            return response

        return answer()

    def _tell(self, request: Any) -> None:
        match = request.resolver_match
        if match is not None:
            getattr(request, "scope", request.META)[KEY] = f"/{match.route}"


class Falcon:
    """Middleware that reports routes of Falcon, for WSGI and ASGI."""

    def process_resource(self, req: Any, resp: Any, resource: Any, params: dict[str, Any]) -> None:
        req.env[KEY] = req.uri_template

    async def process_resource_async(self, req: Any, resp: Any, resource: Any, params: dict[str, Any]) -> None:
        req.scope[KEY] = req.uri_template
