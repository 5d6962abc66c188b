"""What an application is told of the TLS of its connection, as JSON, for each interface."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def _shown(facts: Any) -> Any:
    if isinstance(facts, dict):
        return {str(name): _shown(value) for name, value in facts.items()}
    if isinstance(facts, (list, tuple)):
        return [_shown(value) for value in facts]
    return facts.decode("latin-1") if isinstance(facts, bytes) else facts


def answer(scheme: str, facts: Any) -> bytes:
    return json.dumps({"scheme": scheme, "facts": _shown(facts)}).encode()


def wsgi(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    facts = {name: value for name, value in environ.items() if name == "HTTPS" or name.startswith("SSL_")}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [answer(environ["wsgi.url_scheme"], facts)]


async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:
    assert scope["type"] != "lifespan"
    body = answer(scope["scheme"], scope["extensions"].get("tls"))
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": body.decode()})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def tornado() -> object:
    from tornado import web

    class Told(web.RequestHandler):
        def get(self) -> None:
            is_secure = self.request.protocol == "https"
            facts = {"peercert": self.request.get_ssl_certificate()} if is_secure else None
            self.write(answer(self.request.protocol, facts))

    return web.Application([(r"/", Told)])


def aiohttp() -> object:
    from aiohttp import web

    async def told(request: web.Request) -> web.Response:
        transport = request.transport
        assert transport is not None
        facts = {name: transport.get_extra_info(name) for name in ("peercert", "cipher")}
        return web.Response(body=answer(request.scheme, facts))

    made = web.Application()
    made.add_routes([web.get("/", told)])
    return made
