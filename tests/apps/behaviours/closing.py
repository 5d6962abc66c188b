"""close() of the response iterable: counted by `tag`, in every way a response can end.

`/closing?tag=T&how=...` answers, `/closing?seen=T` tells how often the iterable of T was closed.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from behaviours.query import parameters

closed: Counter[str] = Counter()
lock = threading.Lock()


def record(tag: str) -> None:
    with lock:
        closed[tag] += 1


class Body:
    def __init__(self, tag: str, how: str) -> None:
        self._tag = tag
        self._how = how
        self._left = 3

    def __iter__(self) -> Body:
        return self

    def __next__(self) -> bytes:
        if self._how == "endless":
            time.sleep(0.001)
            return b"e" * 65536
        if self._how == "raise_first" or (self._how == "raise_later" and self._left == 1):
            raise RuntimeError(f"{self._tag}: the iterable fails")
        if self._left == 0:
            raise StopIteration
        self._left -= 1
        return b"piece"

    def close(self) -> None:
        record(self._tag)
        if self._how == "raise_close":
            raise RuntimeError(f"{self._tag}: close() fails")


def last_words(tag: str) -> Iterable[bytes]:
    """Two pieces, and code behind the second."""
    yield b"hello"
    yield b"world"
    record(tag)


class SizedBody(list[bytes]):
    """A list with a close(), as some middlewares return."""

    def __init__(self, tag: str) -> None:
        super().__init__([b"piece", b"piece", b"piece"])
        self._tag = tag

    def close(self) -> None:
        record(self._tag)


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = parameters(environ)
    if "seen" in given:
        text = f"{closed[given['seen']]}".encode()
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
        return [text]
    tag, how = given["tag"], given.get("how", "whole")
    fields = [("Content-Length", given["says"])] if "says" in given else []
    if how == "last_words":
        start_response("200 OK", [("Content-Type", "text/plain"), *fields])
        return last_words(tag)
    if "status" in given:
        start_response(given["status"], fields)
    elif how == "no_body":
        start_response("204 No Content", [("X-Pid", str(os.getpid()))])
    elif how == "short_length":
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    else:
        start_response("200 OK", [("Content-Type", "text/plain"), *fields])
    return SizedBody(tag) if how == "list" else Body(tag, how)
