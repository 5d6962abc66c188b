"""What storms ask of an application: the ledger of `counted`, and deeds that disturb a worker from within.

`/fork?how=exit|raise|stay` leaves a child process behind; `/eat?s=` holds every free descriptor for `s` seconds;
`/stream?mb=` sends so many MiB in pieces of 64 KiB; `/upload` says how long its body was and what it hashes to.
Whatever else is asked for is `counted`'s. The deeds are functions here, because twins for event loops do them, too.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

import counted

PIECE = bytes(range(256)) * 256
DESCRIPTORS = 256
STAY = 2.0

LEDGER = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
"""Kept open: a call is noted also when there is no descriptor left."""

resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


def note(text: str) -> None:
    os.write(LEDGER, f"{text} {os.getpid()}\n".encode())


counted.note = note


def fork(how: str) -> int:
    """Forks as an application does that thinks it is alone; the pid of the child, in the parent."""
    reap()
    child = os.fork()
    if child:
        return child
    if how == "stay":
        time.sleep(STAY)
        os._exit(0)
    if how == "raise":
        raise RuntimeError("a child of the application fails")
    sys.exit(3)


def reap() -> None:
    """Buries the children of earlier calls."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def eat() -> list[int]:
    """Every descriptor that is free."""
    eaten: list[int] = []
    with suppress(OSError):
        while True:
            eaten.append(os.open(os.devnull, os.O_RDONLY))
    return eaten


def give_back(eaten: Iterable[int]) -> None:
    for descriptor in eaten:
        os.close(descriptor)


async def hunger(given: dict[str, str]) -> dict[str, Any]:
    """`/eat` for an event loop."""
    eaten = eat()
    try:
        await asyncio.sleep(float(given["s"]))
    finally:
        give_back(eaten)
    return {"eaten": len(eaten)}


async def wait(given: dict[str, str]) -> None:
    """For an event loop: until the gate is open, or for as long as the request says."""
    if gate := given.get("gate"):
        while not os.path.exists(gate):  # noqa: ASYNC110, ASYNC240 (a look at a local file, by another process's leave)
            await asyncio.sleep(0.005)
    elif "s" in given:
        await asyncio.sleep(float(given["s"]))


def pieces(given: dict[str, str]) -> int:
    return int(given.get("mb", "1")) * (1 << 20) // len(PIECE)


def received(given: dict[str, str], body: bytes) -> dict[str, Any]:
    return {"id": given.get("id"), "length": len(body), "sha256": hashlib.sha256(body).hexdigest(), "pid": os.getpid()}


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = dict(parse_qsl(environ["QUERY_STRING"]))
    match environ["PATH_INFO"]:
        case "/fork":
            return counted.answer(start_response, {"child": fork(given["how"])})
        case "/eat":
            eaten = eat()
            try:
                time.sleep(float(given["s"]))
            finally:
                give_back(eaten)
            return counted.answer(start_response, {"eaten": len(eaten)})
        case "/stream":
            start_response("200 OK", [("Content-Type", "application/octet-stream")])
            return stream(pieces(given))
        case "/upload":
            counted.note(given.get("id", "-"))
            return counted.answer(start_response, received(given, environ["wsgi.input"].read()))
    return counted.application(environ, start_response)


def stream(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield PIECE
