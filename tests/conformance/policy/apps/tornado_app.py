"""What every application of this room does (`wsgi_app.py`), for tornado's bare interfaces (`tornado.httputil`).

A RequestHandler would answer errors itself, with pages and lines of its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from tornado import httputil

PIECE = bytes(65536)
PIECES = 200


class Request(httputil.HTTPMessageDelegate):
    def __init__(self, connection: httputil.HTTPConnection) -> None:
        self.connection: Any = connection
        self.received = 0
        self.complete: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def headers_received(self, start_line: Any, headers: httputil.HTTPHeaders) -> Awaitable[None] | None:
        path, _, self.gate = start_line.path.partition("?")
        _, self.name, self.tag = path.split("/")
        waits = asyncio.ensure_future(self.wait()) if self.name == "asks-late" else None
        if self.name not in WHEN_IT_IS_THERE:
            self.run()
        return waits

    def data_received(self, chunk: bytes) -> None:
        self.received += len(chunk)

    def finish(self) -> None:
        if self.received:
            self.tell("read", self.received)
        self.complete.set_result(self.received)
        if self.name in WHEN_IT_IS_THERE:
            self.run()

    def on_connection_close(self) -> None:
        self.tell("lost", "on_connection_close")
        self.complete.cancel()

    def run(self) -> None:
        if self.name == "raises":
            raise RuntimeError(f"policy marker {self.tag}")
        if self.name in ("body", "later", "refused-by-hook"):
            self.tell("in")
        self.task = asyncio.ensure_future(self.answering())

    async def answering(self) -> None:
        try:
            await BEHAVIOURS[self.name](self)
        except ConnectionError:
            pass
        except Exception as error:
            self.connection.failed(error)

    def tell(self, *words: object) -> None:
        sys.stderr.write(f"told {self.tag} {' '.join(map(str, words))}\n")

    async def start(self, length: int | None = None, first: bytes | None = None) -> None:
        headers = httputil.HTTPHeaders({"Content-Type": "text/plain", "X-Policy": "one"})
        if length is not None:
            headers["Content-Length"] = str(length)
        await self.connection.write_headers(httputil.ResponseStartLine("", 200, "OK"), headers, first)

    async def answer(self, text: str) -> None:
        await self.start(len(text), text.encode())
        self.connection.finish()

    async def wait(self) -> None:
        """Until the test opens the gate."""
        self.tell("in")
        while not os.path.exists(self.gate):  # noqa: ASYNC110, ASYNC240 - seen from another process
            await asyncio.sleep(0.005)


WHEN_IT_IS_THERE = ("hello", "asks-late", "works", "listens", "begins", "raises", "short")
"""Begun when the request is complete; the others with its head."""


async def hello(request: Request) -> None:
    await request.answer("Hello")


async def body(request: Request) -> None:
    await request.answer(str(await request.complete))


async def later(request: Request) -> None:
    """Reads its body when its response has begun."""
    await request.start(first=b"begun")
    await request.connection.write(str(await request.complete).encode())
    request.connection.finish()


async def works(request: Request) -> None:
    await request.wait()
    await request.answer("worked")


async def begins(request: Request) -> None:
    await request.start(first=b"begun")
    await request.wait()
    await request.connection.write(b"worked")
    request.connection.finish()


async def listens(request: Request) -> None:
    request.connection.set_close_callback(lambda: request.tell("left"))
    request.tell("in")


async def pours(request: Request) -> None:
    await request.start()
    request.tell("in")
    count = 0
    try:
        for _ in range(PIECES):
            await request.connection.write(PIECE)
            count += 1
        request.connection.finish()
        request.tell("poured")
    except BaseException as error:
        request.tell("stopped", count, type(error).__name__)
        raise


async def blob(request: Request) -> None:
    await request.start(len(PIECE) * PIECES, PIECE * PIECES)
    request.connection.finish()


async def raises_late(request: Request) -> None:
    await request.start(first=b"begun")
    raise RuntimeError(f"policy marker {request.tag}")


async def short(request: Request) -> None:
    await request.start(10, b"1234")
    request.connection.finish()


BEHAVIOURS: dict[str, Callable[[Request], Awaitable[None]]] = {
    "hello": hello,
    "body": body,
    "refused-by-hook": body,
    "later": later,
    "asks-late": body,
    "works": works,
    "begins": begins,
    "listens": listens,
    "pours": pours,
    "duplex": pours,
    "blob": blob,
    "raises-late": raises_late,
    "short": short,
}


class Server(httputil.HTTPServerConnectionDelegate):
    def start_request(self, server_conn: object, request_conn: httputil.HTTPConnection) -> Request:
        return Request(request_conn)


application = Server()
