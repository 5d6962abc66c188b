"""The gallery for event loops: what the suites that know nothing of an interface ask for, under the same names.

Only that: how ASGI itself is kept is asked of `play`. What takes long to import is left to the requests that need it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

calls = 0


class Request:
    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.pairs = parsed(scope["query_string"].decode("latin-1"))
        self.given = dict(self.pairs)

    async def body(self) -> list[bytes]:
        pieces, more = [], True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ConnectionAbortedError("the client left in the middle of its body")
            more = message.get("more_body", False)
            pieces.append(message.get("body", b""))
        return pieces

    async def start(self, *fields: tuple[str, str], status: int = 200) -> None:
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
        await self.send({"type": "http.response.start", "status": status, "headers": encoded})

    async def piece(self, data: bytes, more: bool = True) -> None:
        await self.send({"type": "http.response.body", "body": data, "more_body": more})

    async def answer(self, data: bytes, kind: str = "text/plain") -> None:
        await self.start(("Content-Type", kind), ("Content-Length", str(len(data))))
        await self.piece(data, False)


def parsed(query: str) -> list[tuple[str, str]]:
    if not query:
        return []
    from urllib.parse import parse_qsl

    return parse_qsl(query, keep_blank_values=True, encoding="latin-1")


async def hello(request: Request) -> None:
    await request.answer(b"Hello\n")


async def sleep(request: Request) -> None:
    await asyncio.sleep(float(request.given.get("s", "0.2")))
    await request.answer(str(os.getpid()).encode())


async def blob(request: Request) -> None:
    await request.answer(b"b" * int(request.given["size"]), "application/octet-stream")


async def body(request: Request) -> None:
    import hashlib

    global calls
    whole = b"".join(await request.body())
    calls += 1
    answer = {"length": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}
    await request.answer(json.dumps(answer).encode(), "application/json")


async def echo(request: Request) -> None:
    """What WSGI's environ would have, as far as it is about the request."""
    scope = request.scope
    target = scope["raw_path"].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    facts = {
        "REQUEST_METHOD": scope["method"],
        "PATH_INFO": scope["path"],
        "QUERY_STRING": query,
        "RAW_URI": target + (f"?{query}" if query else ""),
    }
    for name, value in scope["headers"]:
        facts["HTTP_" + name.decode().upper().replace("-", "_")] = value.decode("latin-1")
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
        await request.piece(bytes([97 + number % 26]) * size)
    await asyncio.sleep(float(given.get("rest", "0")))
    await request.piece(b"", False)


async def fields(request: Request) -> None:
    status = int(request.given.get("status", "200")[:3])
    own = [(name, value) for name, value in request.pairs if name not in ("status", "raw")]
    await request.start(("Content-Type", "text/plain"), *own, status=status)
    await request.piece(b"body")
    await request.piece(b"", False)


async def nothing(request: Request) -> None:
    await request.start(("Content-Type", "text/plain"))
    await request.piece(b"", False)


async def files(request: Request) -> None:
    await request.start(("Content-Type", "text/plain"))
    await request.send({"type": "http.response.pathsend", "path": __file__})


async def gate(request: Request) -> None:
    """Waits until the file `open` exists; that it waits is seen by another file."""
    path = request.given["open"]
    open(f"{path}.in.{os.getpid()}.{id(request)}", "w").close()  # noqa: ASYNC230
    for _ in range(4000):
        if os.path.exists(path):  # noqa: ASYNC240
            break
        await asyncio.sleep(0.005)
    whole = b"".join(await request.body())
    await request.answer(f"{os.getpid()} {len(whole)}".encode())


async def crash(request: Request) -> None:
    when = request.given["when"]
    if when == "later":
        await request.start(("Content-Type", "text/plain"))
        await request.piece(b"begun")
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


async def application(scope: Message, receive: Receive, send: Send) -> None:
    global calls
    if scope["type"] != "http":
        raise ValueError(f"{scope['type']} is nothing for this application")
    request = Request(scope, receive, send)
    name = scope["path"].partition("/")[2].partition("/")[0]
    if name == "count":
        await request.answer(str(calls).encode())
    elif name == "pid":
        await request.answer(str(os.getpid()).encode())
    else:
        # A request that is to be read to its end counts when it has been: before that it may turn out to be none.
        calls += name != "body"
        await BEHAVIOURS.get(name, hello)(request)
