"""A tornado application: an answer, a stream, an upload, and a WebSocket that everybody shares."""

from __future__ import annotations

import asyncio
import hashlib

from tornado import web, websocket


class Hello(web.RequestHandler):
    def get(self, name: str) -> None:
        self.write(f"Hello, {name or 'world'}!\n")


class Countdown(web.RequestHandler):
    """Each line is sent when it is written; `flush` waits for clients that are slow."""

    async def get(self) -> None:
        for number in (5, 4, 3, 2, 1):
            self.write(f"{number}\n")
            await self.flush()
            await asyncio.sleep(0.2)


@web.stream_request_body
class Digest(web.RequestHandler):
    """Takes a body of any size piece by piece; the client sends no faster than `data_received` returns."""

    def prepare(self) -> None:
        assert self.request.connection is not None
        self.request.connection.set_max_body_size(10 * 1024**3)  # type: ignore[attr-defined]
        self.hash = hashlib.sha256()

    async def data_received(self, chunk: bytes) -> None:
        self.hash.update(chunk)

    def put(self) -> None:
        self.write(self.hash.hexdigest() + "\n")


class Chat(websocket.WebSocketHandler):
    """What one says, all hear."""

    everybody: set[Chat] = set()  # noqa: RUF012 - shared

    def open(self) -> None:
        self.everybody.add(self)

    async def on_message(self, message: str | bytes) -> None:
        for other in list(self.everybody):
            await other.write_message(message)

    def on_close(self) -> None:
        self.everybody.discard(self)


app = web.Application(
    [
        (r"/countdown", Countdown),
        (r"/digest", Digest),
        (r"/chat", Chat),
        (r"/([a-z]*)", Hello),
    ]
)
