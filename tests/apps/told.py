"""What an application is told of where a request comes from, as JSON, for each interface the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any


def answer(client: str, scheme: str, host: str, server: list[Any] | None, names: Iterable[str]) -> bytes:
    told = {"client": client, "scheme": scheme, "host": host, "server": server}
    return json.dumps({**told, "fields": sorted(name for name in names if "forwarded" in name)}).encode()


def wsgi(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    names = [key[5:].lower().replace("_", "-") for key in environ if key.startswith("HTTP_")]
    server = [environ["SERVER_NAME"], int(environ["SERVER_PORT"])]
    client, scheme, host = environ["REMOTE_ADDR"], environ["wsgi.url_scheme"], environ["HTTP_HOST"]
    start_response("200 OK", [("Content-Type", "application/json")])
    return [answer(client, scheme, host, server, names)]


async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:
    assert scope["type"] != "lifespan"
    fields = {name.decode(): value.decode() for name, value in scope["headers"]}
    body = answer(scope["client"][0], scope["scheme"], fields["host"], list(scope["server"]), fields)
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
            request = self.request
            names = [name.lower() for name in request.headers]
            self.write(answer(str(request.remote_ip), request.protocol, request.host, None, names))

    return web.Application([(r"/", Told)])


def aiohttp() -> object:
    from aiohttp import web

    async def told(request: web.Request) -> web.Response:
        names = [name.lower() for name in request.headers]
        return web.Response(body=answer(str(request.remote), request.scheme, request.host, None, names))

    made = web.Application()
    made.add_routes([web.get("/", told)])
    return made
