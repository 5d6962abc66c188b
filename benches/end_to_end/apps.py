"""The applications that are measured, one per case. Each is the plainest way to write it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Environ = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], Any]

MEGABYTE = b"x" * 1048576
CHUNK = b"y" * 1024


def hello(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "13")])
    return [b"Hello, World!"]


def json_echo(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    received = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    answer = json.dumps(json.loads(received or b"null")).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))])
    return [answer]


def response_1m(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(MEGABYTE)))])
    return [MEGABYTE]


def upload(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    left = int(environ.get("CONTENT_LENGTH") or 0)
    total = 0
    while left > 0 and (piece := environ["wsgi.input"].read(min(left, 65536))):
        total += len(piece)
        left -= len(piece)
    answer = str(total).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(answer)))])
    return [answer]


def stream_100(environ: Environ, start_response: StartResponse) -> Iterator[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    for _ in range(100):
        yield CHUNK
