"""What an application is told of what a balancer has announced (PROXY protocol), as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

PREFIXES = ("PROXY_", "SSL_", "HTTPS", "REMOTE_", "wsgi.url_scheme")


def wsgi(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({key: value for key, value in environ.items() if key.startswith(PREFIXES)}).encode()]


async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    told = scope["extensions"]["tricorn"].get("proxy")
    body = json.dumps(told, default=lambda value: value.decode("latin-1")).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
