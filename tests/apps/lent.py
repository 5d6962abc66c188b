"""What a worker may be asked to do in place of another, over WSGI; `asgi/lent.py` has the same paths.

Each call is noted in the ledger (`counted`), and its response says in `X-Pid` who answers. `?gate=` waits until there
is a file of that name. A stream notes how far it has come: a byte for each piece, in the file of `?progress=`.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl

from counted import note

LINK = "</a.css>; rel=preload"
TELLING = (
    *("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "SERVER_PROTOCOL", "wsgi.url_scheme"),
    *("REMOTE_ADDR", "REMOTE_PORT", "SERVER_NAME", "SERVER_PORT", "SSL_PROTOCOL", "SSL_CIPHER"),
    *("HTTP_HOST", "HTTP_COOKIE", "HTTP_X_TWICE"),
)


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    path, given = environ["PATH_INFO"], dict(parse_qsl(environ["QUERY_STRING"]))
    note(given.get("id", "-"))
    fields = [("X-Pid", str(os.getpid())), ("Content-Type", "application/octet-stream")]
    if path == "/file":
        file = open(given["path"], "rb")  # noqa: SIM115 (the server closes it)
        start_response("200 OK", [*fields, ("Content-Length", str(os.path.getsize(given["path"])))])
        wrapped: Iterable[bytes] = environ["wsgi.file_wrapper"](file)
        return wrapped
    if path == "/stream":
        start_response("200 OK", fields)
        return stream(given)
    if path == "/lasts":
        start_response("200 OK", fields)
        return lasts(given)
    if path == "/hints":
        environ["wsgi.early_hints"]([("Link", LINK)])
    body = environ["wsgi.input"].read()
    if "gate" in given:
        until_open(given["gate"])
    told = {name: environ.get(name) for name in TELLING}
    text = json.dumps({"told": told, "length": len(body), "sha256": hashlib.sha256(body).hexdigest()}).encode()
    start_response("200 OK", [fields[0], ("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
    return [text]


def until_open(gate: str) -> None:
    for _ in range(12_000):
        if os.path.exists(gate):
            return
        time.sleep(0.005)


def pieces(given: dict[str, str]) -> Iterator[bytes]:
    for number in range(int(given["count"])):
        yield bytes([97 + number % 26]) * int(given["size"])


def stream(given: dict[str, str]) -> Iterator[bytes]:
    for piece in pieces(given):
        progress(given)
        yield piece


def progress(given: dict[str, str]) -> None:
    with open(given["progress"], "ab") as file:
        file.write(b".")


def lasts(given: dict[str, str]) -> Iterator[bytes]:
    """Until the client leaves, or a file says that it is enough."""
    try:
        while not os.path.exists(given["end"]):
            yield b"tick"
            time.sleep(0.01)
        yield b"done"
    finally:
        note(f"{given['id']}.over")
