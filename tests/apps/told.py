"""What an application is told of where a request comes from, as JSON, for each interface the same."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import telling


def answer(client: str, scheme: str, host: str, server: list[Any] | None, names: Iterable[str]) -> bytes:
    told = {"client": client, "scheme": scheme, "host": host, "server": server}
    return json.dumps({**told, "fields": sorted(name for name in names if "forwarded" in name)}).encode()


def of_environ(environ: dict[str, Any]) -> bytes:
    names = [key[5:].lower().replace("_", "-") for key in environ if key.startswith("HTTP_")]
    server = [environ["SERVER_NAME"], int(environ["SERVER_PORT"])]
    return answer(environ["REMOTE_ADDR"], environ["wsgi.url_scheme"], environ["HTTP_HOST"], server, names)


def of_scope(scope: dict[str, Any]) -> bytes:
    fields = {name.decode(): value.decode() for name, value in scope["headers"]}
    return answer(scope["client"][0], scope["scheme"], fields["host"], list(scope["server"]), fields)


def of_tornados_request(request: Any) -> bytes:
    names = [name.lower() for name in request.headers]
    return answer(str(request.remote_ip), request.protocol, request.host, None, names)


def of_aiohttps_request(request: Any) -> bytes:
    names = [name.lower() for name in request.headers]
    return answer(str(request.remote), request.scheme, request.host, None, names)


wsgi = telling.wsgi(of_environ)
asgi = telling.asgi(of_scope)
tornado = telling.tornado(of_tornados_request)
aiohttp = telling.aiohttp(of_aiohttps_request)
