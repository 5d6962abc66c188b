"""Applications that answer with what they are told of a connection, for each interface; callers say what that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def wsgi(answer: Callable[[dict[str, Any]], bytes]) -> Callable[..., list[bytes]]:
    def application(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
        body = answer(environ)
        start_response("200 OK", [("Content-Type", "application/json")])
        return [body]

    return application


def asgi(answer: Callable[[dict[str, Any]], bytes]) -> Callable[..., Any]:
    async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
        assert scope["type"] != "lifespan"
        body = answer(scope)
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": body.decode()})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    return application


def tornado(answer: Callable[[Any], bytes]) -> Callable[[], object]:
    def factory() -> object:
        from tornado import web

        class Told(web.RequestHandler):
            def get(self) -> None:
                self.write(answer(self.request))

        return web.Application([(r"/", Told)])

    return factory


def aiohttp(answer: Callable[[Any], bytes]) -> Callable[[], object]:
    def factory() -> object:
        from aiohttp import web

        async def told(request: web.Request) -> web.Response:
            return web.Response(body=answer(request))

        application = web.Application()
        application.add_routes([web.get("/", told)])
        return application

    return factory
