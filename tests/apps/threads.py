"""Applications of ASGI, aiohttp and tornado that call threads by anyio, and end what is not theirs.

    /thread      the threads that have been used until now, after one more call
    /task        what sniffio says in the first step, and whether the task is current then and later
    /cancels     cancels all tasks of the loop but its own
    /gathers     the same, and waits for them
    /stops       the loop
    /sleep       for long

Each message of a WebSocket is answered as /thread is. The lifespan prints how many threads have been used.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import anyio.to_thread

used: set[int | None] = set()


def call() -> str:
    used.add(threading.get_native_id())
    return str(len(used))


async def answer(path: str) -> str:
    if path == "/thread":
        return await anyio.to_thread.run_sync(call)
    if path == "/task":
        import sniffio

        first, library = asyncio.current_task(), sniffio.current_async_library()
        await asyncio.sleep(0)
        return f"{library}, {first is asyncio.current_task() and first in asyncio.all_tasks()}"
    if path == "/sleep":
        say("sleeps")
        await asyncio.sleep(60)
    if path == "/stops":
        asyncio.get_running_loop().stop()
    if path in ("/cancels", "/gathers"):
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if path == "/gathers":
            await asyncio.gather(*others, return_exceptions=True)
    return "done"


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        for _ in range(2):
            event = await receive()
            await anyio.to_thread.run_sync(call)
            say(f"{event['type']} in {len(used)} threads")
            await send({"type": f"{event['type']}.complete"})
    elif scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": await answer("/thread")})
    else:
        body = (await answer(scope["path"])).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})


def make_aiohttp() -> Any:
    from aiohttp import web

    async def handle(request: web.Request) -> web.Response:
        return web.Response(text=await answer(request.path))

    made = web.Application()
    made.router.add_get("/{tail:.*}", handle)
    return made


def make_tornado() -> Any:
    from tornado.web import Application, RequestHandler

    class Handler(RequestHandler):
        async def get(self) -> None:
            self.write(await answer(self.request.path))

    return Application([(r"/.*", Handler)])
