"""What tornado's documentation shows of a server, and what only shows over a real connection."""

from __future__ import annotations

import asyncio
import hashlib
import time
from pathlib import Path
from typing import Any

from tornado import httputil, ioloop, iostream, web, websocket

HERE = Path(__file__).parent
LEFT: list[str] = []
"""What handlers were told of clients that left."""


class Hello(web.RequestHandler):
    def get(self, name: str) -> None:
        self.write(f"Hello, {name}!")

    def head(self, name: str) -> None:
        self.get(name)


class Facts(web.RequestHandler):
    def get(self) -> None:
        request = self.request
        self.write(
            {
                "uri": request.uri,
                "path": request.path,
                "version": request.version,
                "remote_ip": request.remote_ip,
                "protocol": request.protocol,
                "host": request.host,
                "arguments": self.get_arguments("a"),
                "two": request.headers.get_list("x-two"),
                "cookies": {name: morsel.value for name, morsel in request.cookies.items()},
                "context": str(request.connection.context),  # type: ignore[union-attr]
            }
        )


class Form(web.RequestHandler):
    def post(self) -> None:
        self.write({name: self.get_body_argument(name) for name in self.request.body_arguments})


class Files(web.RequestHandler):
    def post(self) -> None:
        (file,) = self.request.files["file"]
        body = file["body"]
        self.write(
            {
                "note": self.get_body_argument("note"),
                "name": file["filename"],
                "size": len(body),
                "sha256": hashlib.sha256(body).hexdigest(),
            }
        )


@web.stream_request_body
class Upload(web.RequestHandler):
    """Takes a body piece by piece, as slowly as it is asked to."""

    def initialize(self) -> None:
        self.size = self.pieces = self.most = 0
        self.hash = hashlib.sha256()

    async def prepare(self) -> None:
        if limit := self.get_query_argument("limit", ""):
            self.request.connection.set_max_body_size(int(limit))  # type: ignore[union-attr]
        if self.get_query_argument("refuse", ""):
            raise web.HTTPError(403)

    async def data_received(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self.pieces += 1
        self.most = max(self.most, len(chunk))
        self.hash.update(chunk)
        if self.get_query_argument("slow", ""):
            await asyncio.sleep(0.01)

    def post(self) -> None:
        self.write({"size": self.size, "pieces": self.pieces, "most": self.most, "sha256": self.hash.hexdigest()})

    put = post

    def on_connection_close(self) -> None:
        super().on_connection_close()
        LEFT.append("upload")


class Stream(web.RequestHandler):
    async def get(self) -> None:
        if self.get_query_argument("length", ""):
            self.set_header("Content-Length", 10 * 7)
        for number in range(10):
            self.write(f"line {number}\n")
            await self.flush()
            await asyncio.sleep(0)


class Events(web.RequestHandler):
    """Server-sent events until the client has enough."""

    async def get(self) -> None:
        self.set_header("Content-Type", "text/event-stream")
        number = 0
        try:
            while True:
                self.write(f"data: {number}\n\n")
                await self.flush()
                number += 1
                await asyncio.sleep(0.01)
        except iostream.StreamClosedError:
            LEFT.append("events: StreamClosedError")

    def on_connection_close(self) -> None:
        LEFT.append("events: on_connection_close")


class Flood(web.RequestHandler):
    """More than a client takes at once; `flush` waits for it."""

    written = 0

    async def get(self) -> None:
        Flood.written = 0
        piece = b"x" * 65536
        for _ in range(int(self.get_query_argument("pieces"))):
            self.write(piece)
            await self.flush()
            Flood.written += 1


class Written(web.RequestHandler):
    def get(self) -> None:
        self.write(str(Flood.written))


class Wait(web.RequestHandler):
    async def get(self) -> None:
        await asyncio.sleep(float(self.get_query_argument("seconds")))
        self.write("waited")

    def on_connection_close(self) -> None:
        LEFT.append("wait")


class Busy(web.RequestHandler):
    """Computes, and lets no other request go on."""

    def get(self) -> None:
        end = time.monotonic() + float(self.get_query_argument("seconds"))
        while time.monotonic() < end:
            pass
        self.write("busy")


class Left(web.RequestHandler):
    def get(self) -> None:
        self.write({"left": LEFT})


class Cookies(web.RequestHandler):
    def get(self) -> None:
        seen = self.get_cookie("seen", "never")
        kept = (self.get_signed_cookie("kept") or b"nothing").decode()
        self.set_cookie("seen", "yes")
        self.set_signed_cookie("kept", "secret")
        self.write(f"{seen} {kept}")


class Status(web.RequestHandler):
    def get(self, code: str) -> None:
        self.set_status(int(code))
        if code == "302":
            self.redirect("/hello/there")


class Wrong(web.RequestHandler):
    async def get(self) -> None:
        if self.get_query_argument("late", ""):
            self.write("some")
            await self.flush()
        raise ZeroDivisionError("framework marker")


class TooMuch(web.RequestHandler):
    async def get(self) -> None:
        self.set_header("Content-Length", 4)
        self.write("four and more")
        await self.flush()


class TooLittle(web.RequestHandler):
    async def get(self) -> None:
        self.set_header("Content-Length", 9)
        self.write("four")
        await self.flush()


class Raw(web.RequestHandler):
    """Leaves HTTP without ceremony."""

    async def get(self) -> None:
        stream = self.detach()
        await stream.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        line = await stream.read_until(b"\n")
        await stream.write(line.upper())
        stream.close()


class Echo(websocket.WebSocketHandler):
    def get_compression_options(self) -> dict[str, Any] | None:
        return {} if self.get_query_argument("deflate", "") else None

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        return "two" if "two" in subprotocols else None

    async def on_message(self, message: str | bytes) -> None:
        if message == "close":
            self.close(4000, "as you wish")
        else:
            await self.write_message(message, binary=isinstance(message, bytes))

    def on_close(self) -> None:
        LEFT.append(f"websocket: {self.close_code}")


class Delegate(httputil.HTTPServerConnectionDelegate):
    """No Application: what tornado.httputil asks for, and nothing else."""

    class Message(httputil.HTTPMessageDelegate):
        def __init__(self, connection: httputil.HTTPConnection) -> None:
            self.connection = connection
            self.size = 0

        def headers_received(self, start_line: Any, headers: httputil.HTTPHeaders) -> None:
            self.line = start_line

        def data_received(self, chunk: bytes) -> None:
            self.size += len(chunk)

        def finish(self) -> None:
            body = f"{self.line.method} {self.line.path} {self.size}".encode()
            line = httputil.ResponseStartLine("", 200, "Fine")
            self.connection.write_headers(line, httputil.HTTPHeaders({"Content-Length": str(len(body))}), body)
            self.connection.finish()

    def start_request(self, server_conn: object, request_conn: httputil.HTTPConnection) -> Message:
        return Delegate.Message(request_conn)


def make_application(**settings: Any) -> web.Application:
    handlers = [
        (r"/hello/(.*)", Hello),
        (r"/facts", Facts),
        (r"/form", Form),
        (r"/files", Files),
        (r"/upload", Upload),
        (r"/stream", Stream),
        (r"/events", Events),
        (r"/flood", Flood),
        (r"/written", Written),
        (r"/wait", Wait),
        (r"/busy", Busy),
        (r"/left", Left),
        (r"/cookies", Cookies),
        (r"/status/(\d+)", Status),
        (r"/wrong", Wrong),
        (r"/too_much", TooMuch),
        (r"/too_little", TooLittle),
        (r"/raw", Raw),
        (r"/echo", Echo),
        (r"/static/(.*)", web.StaticFileHandler, {"path": str(HERE)}),
    ]
    return web.Application(handlers, cookie_secret="not a secret", **settings)  # type: ignore[arg-type]


application = make_application()
compressed = make_application(compress_response=True)
delegate = Delegate()

TICKS: list[int] = []


def make_ticking() -> web.Application:
    """Asks for the loop while it is loaded, as modules of old do."""

    class Ticks(web.RequestHandler):
        def get(self) -> None:
            self.write(str(len(TICKS)))

    ioloop.PeriodicCallback(lambda: TICKS.append(1), 10).start()
    return web.Application([(r"/", Ticks)])
