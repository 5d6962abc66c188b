"""The gallery for tornado: what the suites that know nothing of an interface ask for, under the same names.

Over tornado's bare interfaces (`tornado.httputil`): a RequestHandler would add fields and refuse methods of its own.
What takes long to import is imported by the requests that need it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl, unquote

from tornado import httputil, iostream

calls = 0

AT_ONCE = ("/early",)
"""What is answered before the request's body is there."""


class Request(httputil.HTTPMessageDelegate):
    def __init__(self, connection: httputil.HTTPConnection) -> None:
        self.connection = connection
        self.chunks: list[bytes] = []

    def headers_received(self, start_line: Any, headers: httputil.HTTPHeaders) -> None:
        self.line, self.headers = start_line, headers
        self.path, _, self.query = start_line.path.partition("?")
        self.pairs = parse_qsl(self.query, keep_blank_values=True, encoding="latin-1")
        self.given = dict(self.pairs)
        if self.path in AT_ONCE:
            self.task = asyncio.ensure_future(self.run())

    def data_received(self, chunk: bytes) -> None:
        self.chunks.append(chunk)

    def finish(self) -> None:
        if self.path not in AT_ONCE:
            self.task = asyncio.ensure_future(self.run())

    def on_connection_close(self) -> None:
        self.chunks.clear()

    async def run(self) -> None:
        try:
            await answer(self)
        except iostream.StreamClosedError:
            pass
        except Exception as error:
            self.connection.failed(error)  # type: ignore[attr-defined]

    async def start(self, *fields: tuple[str, str], status: int = 200, first: bytes | None = None) -> None:
        headers = httputil.HTTPHeaders()
        for name, value in fields:
            headers.add(name, value)
        line = httputil.ResponseStartLine("", status, httputil.responses.get(status, "Unknown"))
        await self.connection.write_headers(line, headers, first)

    async def answer(self, data: bytes, kind: str = "text/plain") -> None:
        await self.start(("Content-Type", kind), ("Content-Length", str(len(data))), first=data)
        self.connection.finish()


async def hello(request: Request) -> None:
    await request.answer(b"Hello\n")


async def sleep(request: Request) -> None:
    await asyncio.sleep(float(request.given.get("s", "0.2")))
    await request.answer(str(os.getpid()).encode())


async def blob(request: Request) -> None:
    await request.answer(b"b" * int(request.given["size"]), "application/octet-stream")


async def body(request: Request) -> None:
    import hashlib

    whole = b"".join(request.chunks)
    answer = {"length": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}
    await request.answer(json.dumps(answer).encode(), "application/json")


async def echo(request: Request) -> None:
    """What WSGI's environ would have, as far as it is about the request."""
    facts = {
        "REQUEST_METHOD": request.line.method,
        "PATH_INFO": unquote(request.path),
        "QUERY_STRING": request.query,
        "RAW_URI": request.line.path,
    }
    for name, value in request.headers.items():
        facts["HTTP_" + name.upper().replace("-", "_")] = value
    told = {key: [type(value).__name__, value] for key, value in facts.items()}
    await request.answer(json.dumps(told).encode(), "application/json")


async def stream(request: Request) -> None:
    given = request.given
    count, size, pause = int(given.get("count", "3")), int(given.get("size", "10")), float(given.get("pause", "0"))
    fields = [("Content-Type", "application/octet-stream")]
    if "length" in given:
        fields.append(("Content-Length", str(count * size)))
    await request.start(*fields)
    for number in range(count):
        if pause and number:
            await asyncio.sleep(pause)
        await request.connection.write(bytes([97 + number % 26]) * size)
    await asyncio.sleep(float(given.get("rest", "0")))
    request.connection.finish()


async def fields(request: Request) -> None:
    status = int(request.given.get("status", "200")[:3])
    own = [(name, value) for name, value in request.pairs if name not in ("status", "raw")]
    await request.start(("Content-Type", "text/plain"), *own, status=status, first=b"body")
    request.connection.finish()


async def nothing(request: Request) -> None:
    await request.start(("Content-Type", "text/plain"))
    request.connection.finish()


async def files(request: Request) -> None:
    with open(__file__, "rb") as file:  # noqa: ASYNC230 - a small one
        await request.answer(file.read())


async def gate(request: Request) -> None:
    """Waits until the file `open` exists; that it waits is seen by another file."""
    path = request.given["open"]
    open(f"{path}.in.{os.getpid()}.{id(request)}", "w").close()  # noqa: ASYNC230
    for _ in range(4000):
        if os.path.exists(path):  # noqa: ASYNC240
            break
        await asyncio.sleep(0.005)
    await request.answer(f"{os.getpid()} {len(b''.join(request.chunks))}".encode())


async def crash(request: Request) -> None:
    when = request.given["when"]
    if when == "later":
        await request.start(("Content-Type", "text/plain"), first=b"begun")
    raise RuntimeError(f"crash marker: {when}")


BEHAVIOURS: dict[str, Callable[[Request], Awaitable[None]]] = {
    "sleep": sleep,
    "blob": blob,
    "body": body,
    "echo": echo,
    "stream": stream,
    "writes": stream,
    "iterables": nothing,
    "files": files,
    "fields": fields,
    "gate": gate,
    "crash": crash,
}


async def answer(request: Request) -> None:
    global calls
    name = request.path.partition("/")[2].partition("/")[0]
    if name == "count":
        await request.answer(str(calls).encode())
    elif name == "pid":
        await request.answer(str(os.getpid()).encode())
    else:
        calls += 1
        await BEHAVIOURS.get(name, hello)(request)


class Gallery(httputil.HTTPServerConnectionDelegate):
    def start_request(self, server_conn: object, request_conn: httputil.HTTPConnection) -> Request:
        return Request(request_conn)


application = Gallery()
