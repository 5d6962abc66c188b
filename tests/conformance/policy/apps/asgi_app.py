"""What every application of this room does (`wsgi_app.py`), for ASGI and, as far as they have it, for WebSockets."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

PIECE = bytes(65536)
PIECES = 200
Message = dict[str, Any]


class Request:
    def __init__(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Any) -> None:
        self.receive, self.send = receive, send
        _, self.name, self.tag = scope["path"].split("/")
        self.gate = scope["query_string"].decode()

    def tell(self, *words: object) -> None:
        sys.stderr.write(f"told {self.tag} {' '.join(map(str, words))}\n")

    async def start(self, length: int | None = None) -> None:
        headers = [(b"content-type", b"text/plain"), (b"x-policy", b"one")]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})

    async def piece(self, data: bytes, more: bool = True) -> None:
        await self.send({"type": "http.response.body", "body": data, "more_body": more})

    async def answer(self, text: str) -> None:
        await self.start(len(text))
        await self.piece(text.encode(), False)

    async def wait(self) -> None:
        """Until the test opens the gate."""
        self.tell("in")
        while not os.path.exists(self.gate):  # noqa: ASYNC110, ASYNC240 - seen from another process
            await asyncio.sleep(0.005)

    async def read(self) -> int:
        count, more = 0, True
        while more:
            event = await self.receive()
            if event["type"] == "http.disconnect":
                self.tell("lost", event["type"])
                raise ConnectionAbortedError
            more = event["more_body"]
            count += len(event["body"])
        self.tell("read", count)
        return count


async def hello(request: Request) -> None:
    await request.answer("Hello")


async def body(request: Request) -> None:
    request.tell("in")
    await request.answer(str(await request.read()))


async def later(request: Request) -> None:
    """Reads its body when its response has begun."""
    await request.start()
    await request.piece(b"begun")
    await request.piece(str(await request.read()).encode(), False)


async def asks_late(request: Request) -> None:
    await request.wait()
    await request.answer(str(await request.read()))


async def works(request: Request) -> None:
    await request.wait()
    await request.answer("worked")


async def begins(request: Request) -> None:
    await request.start()
    await request.piece(b"begun")
    await request.wait()
    await request.piece(b"worked", False)


async def listens(request: Request) -> None:
    request.tell("in")
    while (await request.receive())["type"] != "http.disconnect":
        pass
    request.tell("left")


async def pours(request: Request, departure: asyncio.Future[None] | None = None) -> None:
    """Only a departure that is listened for ends it: `send` does not tell (HTTP specification 2.3)."""
    await request.start()
    request.tell("in")
    count = 0
    try:
        for _ in range(PIECES):
            await request.piece(PIECE)
            if departure is not None and departure.done():
                raise ConnectionAbortedError
            count += 1
        await request.piece(b"", False)
        request.tell("poured")
    except BaseException as error:
        request.tell("stopped", count, type(error).__name__)
        raise


async def duplex(request: Request) -> None:
    """Pours, and listens at the same time, as frameworks do that want to know when their client leaves."""

    async def listen() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    listener = asyncio.create_task(listen())
    try:
        await pours(request, listener)
    finally:
        listener.cancel()


async def blob(request: Request) -> None:
    await request.start(len(PIECE) * PIECES)
    await request.piece(PIECE * PIECES, False)


async def raises(request: Request) -> None:
    raise RuntimeError(f"policy marker {request.tag}")


async def raises_late(request: Request) -> None:
    await request.start()
    await request.piece(b"begun")
    raise RuntimeError(f"policy marker {request.tag}")


async def short(request: Request) -> None:
    await request.start(10)
    await request.piece(b"1234", False)


BEHAVIOURS: dict[str, Callable[[Request], Awaitable[None]]] = {
    "hello": hello,
    "body": body,
    "refused-by-hook": body,
    "later": later,
    "asks-late": asks_late,
    "works": works,
    "begins": begins,
    "listens": listens,
    "pours": pours,
    "duplex": duplex,
    "blob": blob,
    "raises": raises,
    "raises-late": raises_late,
    "short": short,
}


async def websocket(request: Request) -> None:
    await request.receive()
    if request.name in ("works", "raises"):
        await BEFORE[request.name](request)
    await request.send({"type": "websocket.accept", "headers": [(b"x-policy", b"one")]})
    request.tell("in")
    if request.name == "raises-late":
        raise RuntimeError(f"policy marker {request.tag}")
    if request.name == "pours":
        return await floods(request)
    event: Message = {}
    while event.get("type") != "websocket.disconnect":
        event = await request.receive()
        if "text" in event:
            await request.send({"type": "websocket.send", "text": event["text"]})
    request.tell("left")
    return None


async def floods(request: Request) -> None:
    count = 0
    try:
        for _ in range(PIECES):
            await request.send({"type": "websocket.send", "bytes": PIECE})
            count += 1
        request.tell("poured")
    except BaseException as error:
        request.tell("stopped", count, type(error).__name__)
        raise


BEFORE: dict[str, Callable[[Request], Awaitable[None]]] = {"works": Request.wait, "raises": raises}


async def application(scope: Message, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        raise ValueError("nothing for this application")
    request = Request(scope, receive, send)
    await (websocket(request) if scope["type"] == "websocket" else BEHAVIOURS[request.name](request))
