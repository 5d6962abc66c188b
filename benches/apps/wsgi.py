"""The application for WSGI."""

from __future__ import annotations

import ctypes
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

Environ = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], Any]

MEGABYTE = b"x" * 1048576
CHUNK = b"y" * 1024
FILE_LENGTH = 256 * 1024
PR_SET_TIMERSLACK = 29

_thread = threading.local()
_libc = ctypes.CDLL(None)


def app(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    match environ["PATH_INFO"]:
        case "/":
            body = b"Hello, World!"
        case "/echo":
            body = environ["wsgi.input"].read()
        case "/json":
            body = json.dumps(json.loads(environ["wsgi.input"].read() or b"null")).encode()
        case "/megabyte":
            body = MEGABYTE
        case "/count":
            body = b"%d" % count(environ)
        case "/file":
            start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(FILE_LENGTH))])
            return file_wrapper(environ)
        case "/stream":
            start_response("200 OK", [("Content-Type", "text/plain")])
            return stream()
        case _:
            body = work(environ["QUERY_STRING"])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


def file_wrapper(environ: Environ) -> Iterable[bytes]:
    wrapper = environ.get("wsgi.file_wrapper", lambda file, length: iter(lambda: file.read(length), b""))
    found: Iterable[bytes] = wrapper(file_of_bench().open("rb"), 65536)
    return found


@cache
def file_of_bench() -> Path:
    """A file in the page cache."""
    path = Path(__file__).resolve().parents[2] / "target" / "bench-file"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"z" * FILE_LENGTH)
    return path


def count(environ: Environ) -> int:
    left = int(environ.get("CONTENT_LENGTH") or 0)
    total = 0
    while left and (piece := environ["wsgi.input"].read(min(left, 65536))):
        total += len(piece)
        left -= len(piece)
    return total


def stream() -> Iterator[bytes]:
    for _ in range(100):
        yield CHUNK


def work(query: str) -> bytes:
    """`/work?us=20000` sleeps for 20 ms, and answers with its pid."""
    microseconds = int(query.removeprefix("us=") or 0)
    if not hasattr(_thread, "precise"):
        # The kernel may let a thread sleep 50 microseconds longer, to save energy.
        _thread.precise = _libc.prctl(PR_SET_TIMERSLACK, 1)
    if microseconds:
        time.sleep(microseconds / 1e6)
    return b"%d" % os.getpid()
