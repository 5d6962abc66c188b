"""What an application is told of the TLS of its connection, as JSON, for each interface."""

from __future__ import annotations

import json
from typing import Any

import telling


def _shown(facts: Any) -> Any:
    if isinstance(facts, dict):
        return {str(name): _shown(value) for name, value in facts.items()}
    if isinstance(facts, (list, tuple)):
        return [_shown(value) for value in facts]
    return facts.decode("latin-1") if isinstance(facts, bytes) else facts


def answer(scheme: str, facts: Any) -> bytes:
    return json.dumps({"scheme": scheme, "facts": _shown(facts)}).encode()


def of_environ(environ: dict[str, Any]) -> bytes:
    facts = {name: value for name, value in environ.items() if name == "HTTPS" or name.startswith("SSL_")}
    return answer(environ["wsgi.url_scheme"], facts)


def of_scope(scope: dict[str, Any]) -> bytes:
    return answer(scope["scheme"], scope["extensions"].get("tls"))


def of_tornados_request(request: Any) -> bytes:
    if request.protocol != "https":
        return answer(request.protocol, None)
    session = request.connection.stream.socket
    facts = {"peercert": request.get_ssl_certificate(), "version": session.version(), "cipher": session.cipher()}
    return answer(request.protocol, facts)


def of_aiohttps_request(request: Any) -> bytes:
    facts = {name: request.transport.get_extra_info(name) for name in ("peercert", "cipher")}
    return answer(request.scheme, facts)


wsgi = telling.wsgi(of_environ)
asgi = telling.asgi(of_scope)
tornado = telling.tornado(of_tornados_request)
aiohttp = telling.aiohttp(of_aiohttps_request)
