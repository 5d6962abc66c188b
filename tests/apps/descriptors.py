"""Descriptors of a process: `/eat` opens files until there is no room, `/open` does what applications do with a few."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

EATEN: list[int] = []


def eat() -> int:
    while True:
        try:
            # A regular file: gevent's os.close leaves the closing of anything else to its loop, some time later.
            EATEN.append(os.open(__file__, os.O_RDONLY))
        except OSError:
            return len(EATEN)


def give_back() -> int:
    count = len(EATEN)
    while EATEN:
        os.close(EATEN.pop())
    return count


def use() -> int:
    """Eight files and a connection at once, closed again."""
    with ExitStack() as stack:
        files = [stack.enter_context(open(__file__, "rb")) for _ in range(8)]
        near, far = socket.socketpair()
        near.close()
        far.close()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            socket.create_connection(listener.getsockname()).close()
    return len(files)


DEEDS: dict[str, Callable[[], int]] = {"/": lambda: 0, "/eat": eat, "/back": give_back, "/open": use}


def answer(path: str) -> bytes:
    try:
        return b"%d" % DEEDS[path]()
    except OSError as error:
        return os.strerror(error.errno or 0).encode()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    body = answer(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
