"""What every application of this room does (`wsgi_app.py`), for aiohttp."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from aiohttp import web

PIECE = bytes(65536)
PIECES = 200


class Request:
    def __init__(self, request: web.Request) -> None:
        self.request = request
        _, self.name, self.tag = request.path.split("/")
        self.gate = request.query_string

    def tell(self, *words: object) -> None:
        sys.stderr.write(f"told {self.tag} {' '.join(map(str, words))}\n")

    async def start(self, length: int | None = None) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain", "X-Policy": "one"})
        response.content_length = length
        await response.prepare(self.request)
        return response

    def answer(self, text: str) -> web.Response:
        return web.Response(text=text, headers={"X-Policy": "one"})

    async def wait(self) -> None:
        """Until the test opens the gate."""
        self.tell("in")
        while not os.path.exists(self.gate):  # noqa: ASYNC110, ASYNC240 - seen from another process
            await asyncio.sleep(0.005)

    async def read(self) -> int:
        count = 0
        try:
            async for piece in self.request.content.iter_any():
                count += len(piece)
        except BaseException as error:
            self.tell("lost", type(error).__name__)
            raise
        self.tell("read", count)
        return count


async def hello(request: Request) -> web.StreamResponse:
    return request.answer("Hello")


async def body(request: Request) -> web.StreamResponse:
    request.tell("in")
    return request.answer(str(await request.read()))


async def later(request: Request) -> web.StreamResponse:
    """Reads its body when its response has begun."""
    response = await request.start()
    await response.write(b"begun")
    await response.write(str(await request.read()).encode())
    return response


async def asks_late(request: Request) -> web.StreamResponse:
    await request.wait()
    return request.answer(str(await request.read()))


async def works(request: Request) -> web.StreamResponse:
    await request.wait()
    return request.answer("worked")


async def begins(request: Request) -> web.StreamResponse:
    response = await request.start()
    await response.write(b"begun")
    await request.wait()
    await response.write(b"worked")
    return response


async def listens(request: Request) -> web.StreamResponse:
    request.tell("in")
    while request.request.transport is not None:  # noqa: ASYNC110 - as its documentation advises
        await asyncio.sleep(0.005)
    request.tell("left")
    return request.answer("left")


async def pours(request: Request) -> web.StreamResponse:
    response = await request.start()
    request.tell("in")
    count = 0
    try:
        for _ in range(PIECES):
            await response.write(PIECE)
            count += 1
        await response.write_eof()
        request.tell("poured")
    except BaseException as error:
        request.tell("stopped", count, type(error).__name__)
        raise
    return response


async def duplex(request: Request) -> web.StreamResponse:
    """Pours, and reads its body at the same time."""
    listener = asyncio.create_task(request.read())
    try:
        return await pours(request)
    finally:
        listener.cancel()


async def blob(request: Request) -> web.StreamResponse:
    return web.Response(body=PIECE * PIECES, headers={"X-Policy": "one"})


async def raises(request: Request) -> web.StreamResponse:
    raise RuntimeError(f"policy marker {request.tag}")


async def raises_late(request: Request) -> web.StreamResponse:
    response = await request.start()
    await response.write(b"begun")
    raise RuntimeError(f"policy marker {request.tag}")


async def short(request: Request) -> web.StreamResponse:
    response = await request.start(10)
    await response.write(b"1234")
    return response


BEHAVIOURS: dict[str, Callable[[Request], Awaitable[web.StreamResponse]]] = {
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


async def handle(request: web.Request) -> web.StreamResponse:
    own = Request(request)
    return await BEHAVIOURS[own.name](own)


application = web.Application()
application.router.add_route("*", "/{behaviour}/{tag}", handle)
