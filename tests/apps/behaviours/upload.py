"""Uploads of an application that may begin before its request's body has come (`request_buffering = off`).

`how=refuse` reads nothing, `first` reads up to `size` bytes, `all` reads in pieces, `catch` answers what reading
raised, `stream` sends back each line as soon as it has come.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from behaviours.query import parameters


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = parameters(environ)
    source, how, size = environ["wsgi.input"], given["how"], int(given.get("size", "65536"))
    status, answer = "200 OK", b""
    if how == "stream":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return stream(source)
    if how == "refuse":
        status, answer = "401 Unauthorized", b"no"
    elif how == "first":
        answer = source.read(size)
    elif how == "all":
        answer = summary(source, size)
    elif how == "catch":
        answer = caught(source, size)
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(answer)))])
    return [answer]


def summary(source: Any, size: int) -> bytes:
    import hashlib

    digest, length = hashlib.sha256(), 0
    while piece := source.read(size):
        digest.update(piece)
        length += len(piece)
    return json.dumps({"length": length, "sha256": digest.hexdigest()}).encode()


def caught(source: Any, size: int) -> bytes:
    try:
        return summary(source, size)
    except OSError as error:
        return f"{type(error).__name__}: {error}".encode()


def stream(source: Any) -> Iterator[bytes]:
    while line := source.readline():
        yield line.upper()
