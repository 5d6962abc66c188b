"""A WSGI application under the class `tornado`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if path == "/wrong":
        raise ZeroDivisionError("framework marker")
    body = environ["wsgi.input"].read()
    facts = f"{environ['REQUEST_METHOD']} {path} {environ['QUERY_STRING']} {environ['wsgi.url_scheme']} {len(body)}"
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Thread", str(environ["wsgi.multithread"]))])
    return [facts.encode()]
