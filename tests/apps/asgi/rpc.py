"""A gRPC server as an ASGI application: PROTOCOL-HTTP2.md of gRPC by hand, with bytes for messages.

Each method of the service `test.Echo` is a coroutine that reads a call's messages and answers with others. `x-tag`
names a call: `Told` has what was noted of it.
"""

from __future__ import annotations

import asyncio
import base64
import re
import struct
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import quote

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

OK, UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED = 0, 2, 4, 12
UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
PREFIX = struct.Struct(">BI")
"""Whether the message is compressed, and its length."""
NOTES: dict[str, list[str]] = defaultdict(list)
GATES: dict[str, asyncio.Event] = defaultdict(asyncio.Event)


class Status(Exception):
    """What a call ends with."""

    def __init__(self, code: int, message: str = "") -> None:
        self.code = code
        self.message = message


class Left(Exception):
    """The client has cancelled the call, or its connection is gone."""


class Call:
    """A call: its messages one by one, and the answers."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.path: str = scope["path"]
        self.metadata = [(name.decode(), value.decode()) for name, value in scope["headers"]]
        self.tag = dict(self.metadata).get("x-tag", "untagged")
        self.trailing: list[tuple[str, str]] = []
        self._receive = receive
        self._send = send
        self._begun = False
        self._buffer = bytearray()
        self._ended = False

    def note(self, what: str) -> None:
        NOTES[self.tag].append(what)

    @property
    def timeout(self) -> float | None:
        given = re.fullmatch(r"(\d{1,8})([HMSmun])", dict(self.metadata).get("grpc-timeout", ""))
        return int(given[1]) * UNITS[given[2]] if given else None

    async def messages(self) -> AsyncIterator[bytes]:
        while True:
            while (message := self._whole()) is not None:
                yield message
            if self._ended:
                break
            await self.more()
        if self._buffer:
            raise Status(UNKNOWN, "the last message is not whole")

    async def message(self) -> bytes:
        """The only one."""
        got = [message async for message in self.messages()]
        if len(got) != 1:
            raise Status(UNKNOWN, f"{len(got)} messages in place of one")
        return got[0]

    async def more(self) -> None:
        """Reads what comes next."""
        event = await self._receive()
        if event["type"] == "http.disconnect":
            raise Left
        self._buffer += event["body"]
        self._ended = not event["more_body"]

    def _whole(self) -> bytes | None:
        if len(self._buffer) < PREFIX.size:
            return None
        compressed, length = PREFIX.unpack_from(self._buffer)
        if compressed:
            raise Status(UNIMPLEMENTED, "no compression was agreed")
        end = PREFIX.size + length
        if len(self._buffer) < end:
            return None
        message = bytes(self._buffer[PREFIX.size : end])
        del self._buffer[:end]
        return message

    async def begin(self) -> None:
        """Answers with the metadata of the request, as far as it is the test's."""
        own = [(name, value) for name, value in self.metadata if name.startswith("x-")]
        await self._head(own, trailers=True)

    async def answer(self, message: bytes) -> None:
        if not self._begun:
            await self.begin()
        body = PREFIX.pack(0, len(message)) + message
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self, status: Status) -> None:
        """The status in trailers; or in the head, if nothing was answered (`Trailers-Only`)."""
        fields = [("grpc-status", str(status.code)), ("grpc-message", quote(status.message)), *self.trailing]
        if self._begun:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            await self._send({"type": "http.response.trailers", "headers": _bytes(fields)})
        else:
            await self._head(fields, trailers=False)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _head(self, fields: list[tuple[str, str]], *, trailers: bool) -> None:
        self._begun = True
        headers = _bytes([("content-type", "application/grpc"), *fields])
        await self._send({"type": "http.response.start", "status": 200, "headers": headers, "trailers": trailers})


def _bytes(fields: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in fields]


async def unary(call: Call) -> None:
    message = await call.message()
    call.trailing = [("x-length", str(len(message))), ("x-sum-bin", base64.b64encode(message[:3]).decode().rstrip("="))]
    await call.answer(message)


async def many(call: Call) -> None:
    """So many messages of such a size."""
    count, size = map(int, (await call.message()).split())
    for number in range(count):
        await call.answer(bytes([number % 256]) * size)


async def joined(call: Call) -> None:
    await call.answer(b" ".join([message async for message in call.messages()]))


async def chat(call: Call) -> None:
    await call.begin()
    async for message in call.messages():
        await call.answer(b"re: " + message)


async def fail(call: Call) -> None:
    """With a status; after so many messages."""
    count, code, text = (await call.message()).split(b" ", 2)
    for number in range(int(count)):
        await call.answer(b"%d" % number)
    raise Status(int(code), text.decode())


async def endless(call: Call) -> None:
    """Answers once, and waits until the client has left."""
    await call.answer(await call.message())
    while True:
        await call.more()


async def sleep(call: Call) -> None:
    """Longer than any deadline of a test."""
    await call.message()
    call.note("sleeps")
    await asyncio.sleep(3600)


async def wait(call: Call) -> None:
    """Until the gate of this name is opened."""
    name = (await call.message()).decode()
    call.note("waits")
    await GATES[name].wait()
    await call.answer(b"after " + name.encode())


async def open_gate(call: Call) -> None:
    name = (await call.message()).decode()
    GATES[name].set()
    await call.answer(b"")


async def told(call: Call) -> None:
    await call.answer("\n".join(NOTES[(await call.message()).decode()]).encode())


METHODS: dict[str, Callable[[Call], Awaitable[None]]] = {
    "Unary": unary,
    "Many": many,
    "Joined": joined,
    "Chat": chat,
    "Fail": fail,
    "Endless": endless,
    "Sleep": sleep,
    "Wait": wait,
    "Open": open_gate,
    "Told": told,
}


async def perform(call: Call) -> Status:
    service, _, name = call.path.lstrip("/").partition("/")
    method = METHODS.get(name)
    if service != "test.Echo" or method is None:
        return Status(UNIMPLEMENTED, f"nothing is named {call.path}")
    try:
        await asyncio.wait_for(method(call), call.timeout)
    except Status as status:
        return status
    except asyncio.TimeoutError:
        call.note("deadline exceeded")
        return Status(DEADLINE_EXCEEDED, "it took too long")
    return Status(OK)


async def application(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    call = Call(scope, receive, send)
    try:
        status = await perform(call)
    except Left:
        call.note("left")
        return
    except asyncio.CancelledError:
        call.note("cancelled")
        raise
    with suppress(OSError):  # the client has left
        await call.end(status)
