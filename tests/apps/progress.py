"""Calls that last longer than `timeout` and are not stuck, and some that are. `/pid` names the worker.

`every` is the time between two pieces, in seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl

import tricorn


def drip(count: int, every: float, piece: bytes = b"piece\n") -> Iterator[bytes]:
    for _ in range(count):
        time.sleep(every)
        yield piece


def write(environ: dict[str, Any], start_response: Any, given: dict[str, str]) -> Iterable[bytes]:
    """The same by way of `write`."""
    send = start_response("200 OK", [])
    for piece in drip(int(given["count"]), float(given["every"])):
        send(piece)
    return []


def hints(environ: dict[str, Any], start_response: Any, given: dict[str, str]) -> Iterable[bytes]:
    """Nothing but interim responses until the end."""
    for _ in drip(int(given["count"]), float(given["every"])):
        environ["wsgi.early_hints"]([("Link", "</a.css>; rel=preload")])
    start_response("200 OK", [("Content-Length", "5")])
    return [b"done\n"]


def taken(environ: dict[str, Any], start_response: Any, given: dict[str, str]) -> Iterable[bytes]:
    """Speaks for itself over the client's socket, frame after frame; between two it is silent for long."""
    sock = environ["gunicorn.socket"]
    for number in range(int(given["count"])):
        sock.sendall(b"frame-%d\n" % number)
        time.sleep(float(given["every"]))
    return []


def frames(environ: dict[str, Any], start_response: Any, given: dict[str, str]) -> Iterable[bytes]:
    """The same, and nothing thrown into the call ends it before its time."""
    sock = environ["gunicorn.socket"]
    end = time.monotonic() + int(given["count"]) * float(given["every"])
    number = 0
    while time.monotonic() < end:
        try:
            sock.sendall(b"frame-%d\n" % number)
            number += 1
            time.sleep(float(given["every"]))
        except tricorn.RequestTimeout:
            end = time.monotonic() + 2
    return []


def stream(pieces: Callable[[dict[str, str]], Iterable[bytes]]) -> Any:
    def answer(environ: dict[str, Any], start_response: Any, given: dict[str, str]) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return pieces(given)

    return answer


def stalls_in_a_stream() -> Iterator[bytes]:
    yield b"first\n"
    time.sleep(60)


ANSWERS: dict[str, Any] = {
    "/drip": stream(lambda given: drip(int(given["count"]), float(given["every"]))),
    "/empty": stream(lambda given: drip(int(given["count"]), float(given["every"]), b"")),
    "/flood": stream(lambda given: (b"x" * 65536 for _ in range(int(given["count"])))),
    "/stalls": stream(lambda given: stalls_in_a_stream()),
    "/pid": stream(lambda given: [str(os.getpid()).encode()]),
    "/write": write,
    "/hints": hints,
    "/taken": taken,
    "/frames": frames,
}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    answer = ANSWERS[environ["PATH_INFO"]]
    body: Iterable[bytes] = answer(environ, start_response, dict(parse_qsl(environ["QUERY_STRING"])))
    return body
