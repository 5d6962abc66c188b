"""Applications whose code runs in the midst of the server's: in headers, in atoms of the access log, in finalizers."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl

Headers = Iterator[tuple[str, Any]]


def wsgi(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = dict(parse_qsl(environ["QUERY_STRING"]))
    return PATHS.get(environ["PATH_INFO"], plain)(environ, start_response, given)


def plain(environ: dict[str, Any], start_response: Any, _: dict[str, str]) -> Iterable[bytes]:
    body = environ["wsgi.input"].read() or b"plain"
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def hints(environ: dict[str, Any], start_response: Any, _: dict[str, str]) -> Iterable[bytes]:
    """Headers that are made while they are read, and write meanwhile."""

    def headers() -> Headers:
        yield "Content-Length", "5"
        environ["wsgi.early_hints"]([("Link", "</a.css>; rel=preload")])
        yield "X-Made", "late"

    start_response("200 OK", headers())
    return [b"hints"]


def shown(environ: dict[str, Any], start_response: Any, _: dict[str, str]) -> Iterable[bytes]:
    """A wrong value, which writes when the error message shows it."""

    class Value:
        def __repr__(self) -> str:
            environ["wsgi.early_hints"]([("Link", "</a.css>; rel=preload")])
            return "a value that speaks"

    start_response("200 OK", [("X-Value", Value())])
    return [b""]


class Trap:
    """Garbage that only the collector finds, and that waits when it does."""

    def __init__(self) -> None:
        self.myself = self

    def __del__(self) -> None:
        trapped.append(os.getpid())
        freed().wait()


trapped: list[int] = []
_freed: list[Any] = []


def freed() -> Any:
    """An event of gevent's, made in the worker."""
    if not _freed:
        from gevent.event import Event

        _freed.append(Event())
    return _freed[0]


def trap(environ: dict[str, Any], start_response: Any, given: dict[str, str]) -> Iterable[bytes]:
    """The collector comes so many objects later than this request makes garbage."""
    gc.collect()
    freed().clear()
    trapped.clear()
    start_response("200 OK", [("Content-Length", "4")])
    answer = [b"trap"]
    gc.set_threshold(int(given["after"]))
    Trap()
    return answer


def free(environ: dict[str, Any], start_response: Any, _: dict[str, str]) -> Iterable[bytes]:
    gc.set_threshold(700)
    freed().set()
    body = str(len(trapped)).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


PATHS = {"/hints": hints, "/shown": shown, "/trap": trap, "/free": free}


class User:
    """As lazy objects of frameworks are: what it is called is found out when it is asked for."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def __str__(self) -> str:
        with open(os.path.join(self.directory, "asked"), "w"):
            pass
        while not os.path.exists(os.path.join(self.directory, "known")):
            time.sleep(0.005)
        return "alice"


async def accepted_twice(receive: Any, send: Any) -> None:
    """Headers that accept the WebSocket while they are read."""

    def headers() -> Iterator[tuple[bytes, bytes]]:
        send({"type": "websocket.accept"})
        yield b"x-late", b"1"

    await receive()
    try:
        await send({"type": "websocket.accept", "headers": headers()})
    except RuntimeError as error:
        await send({"type": "websocket.send", "text": str(error)})
    await send({"type": "websocket.close"})


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await accepted_twice(receive, send)
        return
    given = dict(parse_qsl(scope["query_string"].decode()))
    if "directory" in given:
        scope["user"] = User(given["directory"])
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
