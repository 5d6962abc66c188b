"""Streams that Starlette sends, behind the middleware that most applications have; what becomes of them is noted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from notes import FILE, GATES, NOTES
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket


async def silent(tag: str) -> AsyncIterator[str]:
    """A first piece, and then nothing: a model that thinks."""
    try:
        yield "data: first\n\n"
        await asyncio.Event().wait()
    finally:
        NOTES[tag].append("the stream is closed")


async def talking(tag: str, pause: float = 0.01) -> AsyncIterator[str]:
    """Without a pause: a piece in each turn of the loop."""
    try:
        while True:
            yield "data: again\n\n"
            await asyncio.sleep(pause)
    finally:
        NOTES[tag].append("the stream is closed")


async def after(tag: str) -> None:
    NOTES[tag].append("background")


async def stream(request: Request) -> StreamingResponse:
    kinds = {"silent": silent, "talking": talking, "hasty": partial(talking, pause=0)}
    tag, pieces = request.query_params["tag"], kinds[request.path_params["kind"]]
    return StreamingResponse(pieces(tag), media_type="text/event-stream", background=BackgroundTask(after, tag))


async def file(request: Request) -> FileResponse:
    """Begun when its client has left: temporary files are deleted in the background."""
    tag = request.query_params["tag"]
    NOTES[tag].append("begun")
    await GATES[tag].wait()
    return FileResponse(FILE, background=BackgroundTask(after, tag))


async def pay(request: Request) -> PlainTextResponse:
    tag = request.query_params["tag"]
    NOTES[tag].append("begun")
    await GATES[tag].wait()
    NOTES[tag].append("paid")
    return PlainTextResponse("paid", background=BackgroundTask(after, tag))


async def fails(request: Request) -> PlainTextResponse:
    if request.query_params.get("wait"):
        await asyncio.sleep(0.001)
    raise RuntimeError(request.query_params["marker"])


async def notes(request: Request) -> JSONResponse:
    return JSONResponse(NOTES[request.query_params["tag"]])


async def go(request: Request) -> PlainTextResponse:
    GATES[request.query_params["tag"]].set()
    return PlainTextResponse("gone")


async def push(websocket: WebSocket) -> None:
    """Sends without listening: Starlette turns our OSError into WebSocketDisconnect."""
    await websocket.accept()
    try:
        while True:
            await websocket.send_text("tick")
            await asyncio.sleep(0.01)
    finally:
        NOTES[websocket.query_params["tag"]].append("the socket is closed")


async def passes(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    return await call_next(request)


ROUTES = [
    Route("/stream/{kind}", stream),
    Route("/file", file),
    Route("/pay", pay, methods=["POST"]),
    Route("/fails", fails),
    WebSocketRoute("/push", push),
]
BEHIND: dict[str, list[Any]] = {
    "nothing": [],
    "base": [Middleware(BaseHTTPMiddleware, dispatch=passes)],
    "gzip": [Middleware(GZipMiddleware)],
    "both": [Middleware(BaseHTTPMiddleware, dispatch=passes), Middleware(GZipMiddleware)],
}
application = Starlette(
    routes=[
        Route("/notes", notes),
        Route("/go", go),
        *(Mount(f"/{name}", app=Starlette(routes=ROUTES, middleware=behind)) for name, behind in BEHIND.items()),
    ]
)
