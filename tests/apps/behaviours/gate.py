"""Requests that wait inside the application until a file exists: `/gate?open=PATH` waits, `/gate?in=1` counts them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from typing import Any

from behaviours.query import parameters

inside = 0
lock = threading.Lock()


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    global inside
    given = parameters(environ)
    path = given["open"]
    with lock:
        inside += 1
    try:
        # Seen from outside: the test waits for this file before it goes on.
        open(f"{path}.in.{os.getpid()}.{threading.get_ident()}", "a").close()
        end = time.monotonic() + 20
        while not os.path.exists(path) and time.monotonic() < end:
            time.sleep(0.005)
    finally:
        with lock:
            inside -= 1
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    text = f"{os.getpid()} {len(body)}".encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
    return [text]
