"""The sample application in Starlette."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from notes import FILE, GATES, NOTES, digest, events, held, lines, work
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
    print("lifespan: startup", flush=True)
    yield {"pool": ["a connection"]}
    print("lifespan: shutdown", flush=True)


async def hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"Hello, {request.path_params['name']}!")


async def form(request: Request) -> JSONResponse:
    return JSONResponse(dict(await request.form()))


async def upload(request: Request) -> JSONResponse:
    async with request.form() as given:
        file: Any = given["file"]
        data = await file.read()
        told = {"name": file.filename, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        return JSONResponse({**told, "note": given["note"]})


async def raw(request: Request) -> JSONResponse:
    return JSONResponse(await digest(request.stream(), request.query_params.get("tag", "")))


async def echo(request: Request) -> StreamingResponse:
    return StreamingResponse(request.stream(), media_type="application/octet-stream")


async def stream(request: Request) -> StreamingResponse:
    return StreamingResponse(lines(), media_type="text/plain")


async def sse(request: Request) -> StreamingResponse:
    return StreamingResponse(events(request.query_params["tag"]), media_type="text/event-stream")


async def cookies(request: Request) -> PlainTextResponse:
    response = PlainTextResponse(request.cookies.get("seen", "never"))
    response.set_cookie("seen", "yes")
    response.set_cookie("other", "b")
    return response


async def file(request: Request) -> FileResponse:
    return FileResponse(FILE, media_type="application/octet-stream")


async def error(request: Request) -> PlainTextResponse:
    raise RuntimeError("framework marker")


async def state(request: Request) -> JSONResponse:
    return JSONResponse(request.state.pool)


async def background(request: Request) -> PlainTextResponse:
    return PlainTextResponse("accepted", background=BackgroundTask(work, request.query_params["tag"]))


async def waits(request: Request) -> PlainTextResponse:
    await held(request.query_params["tag"])
    return PlainTextResponse("never")


async def asks(request: Request) -> PlainTextResponse:
    """Asks from time to time whether anybody still waits."""
    tag = request.query_params["tag"]
    NOTES[tag].append("asks")
    while not await request.is_disconnected():
        if GATES[tag].is_set():
            return PlainTextResponse("still there")
        await asyncio.sleep(0.01)
    NOTES[tag].append("disconnected")
    return PlainTextResponse("never")


def in_a_thread(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(threading.current_thread() is not threading.main_thread()))


async def notes(request: Request) -> JSONResponse:
    return JSONResponse(NOTES[request.query_params["tag"]])


async def go(request: Request) -> PlainTextResponse:
    GATES[request.query_params["tag"]].set()
    return PlainTextResponse("gone")


async def redirect(request: Request) -> RedirectResponse:
    return RedirectResponse(request.url_for("hello", name="again"))


async def ws_echo(websocket: WebSocket) -> None:
    await websocket.accept(headers=[(b"x-accepted", b"yes")])
    try:
        while True:
            message = await websocket.receive()
            if message.get("text") is not None:
                await websocket.send_text(message["text"])
            elif message.get("bytes") is not None:
                await websocket.send_bytes(message["bytes"])
            else:
                NOTES[websocket.query_params.get("tag", "")].append(f"{message['code']} {message.get('reason') or ''}")
                return
    except WebSocketDisconnect:
        NOTES[websocket.query_params.get("tag", "")].append("sent in vain")


async def ws_json(websocket: WebSocket) -> None:
    await websocket.accept(subprotocol=websocket.scope["subprotocols"][-1])
    data = await websocket.receive_json()
    await websocket.send_json({**data, "seen": True, "state": websocket.state.pool})
    await websocket.close(4001, "enough")


async def ws_refused(websocket: WebSocket) -> None:
    await websocket.close(1008)


async def ws_denied(websocket: WebSocket) -> None:
    await websocket.send_denial_response(PlainTextResponse("not you", 401))


class Marking:
    """A middleware as ASGI has them: it changes what is sent."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["x-middleware"] = "yes"
            await send(message)

        await self.app(scope, receive, marked)


app = application = Starlette(
    lifespan=lifespan,
    middleware=[Middleware(Marking), Middleware(GZipMiddleware, minimum_size=100)],
    routes=[
        Route("/hello/{name}", hello, name="hello"),
        Route("/form", form, methods=["POST"]),
        Route("/upload", upload, methods=["POST"]),
        Route("/raw", raw, methods=["POST"]),
        Route("/echo", echo, methods=["POST"]),
        Route("/stream", stream),
        Route("/events", sse),
        Route("/cookies", cookies),
        Route("/file", file),
        Route("/error", error),
        Route("/state", state),
        Route("/background", background),
        Route("/waits", waits),
        Route("/asks", asks),
        Route("/thread", in_a_thread),
        Route("/redirect", redirect),
        Route("/notes", notes),
        Route("/go", go),
        Mount("/static", StaticFiles(directory=FILE.parent)),
        WebSocketRoute("/ws/echo", ws_echo),
        WebSocketRoute("/ws/json", ws_json),
        WebSocketRoute("/ws/refused", ws_refused),
        WebSocketRoute("/ws/denied", ws_denied),
    ],
)
