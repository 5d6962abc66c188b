"""The cases as a WSGI application, by path."""

from __future__ import annotations

from collections.abc import Iterable

from benches.end_to_end import apps


def app(environ: apps.Environ, start_response: apps.StartResponse) -> Iterable[bytes]:
    match environ["PATH_INFO"]:
        case "/":
            return apps.hello(environ, start_response)
        case "/stream":
            return apps.stream_100(environ, start_response)
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
