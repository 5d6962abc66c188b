"""A plain WSGI application: a callable that is given the request and says the response."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    name = environ["PATH_INFO"].strip("/") or "world"
    body = f"Hello, {name}!\n".encode("latin-1")
    start_response("200 OK", [("Content-Type", "text/plain; charset=latin-1"), ("Content-Length", str(len(body)))])
    return [body]
