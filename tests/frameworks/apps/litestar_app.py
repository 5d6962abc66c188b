"""The sample application in Litestar."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from litestar import Litestar, MediaType, Request, Response, WebSocket, get, post, websocket
from litestar.background_tasks import BackgroundTask
from litestar.datastructures import Cookie, UploadFile
from litestar.enums import RequestEncodingType
from litestar.exceptions import WebSocketDisconnect
from litestar.params import Body
from litestar.response import File, Redirect, ServerSentEvent, Stream
from litestar.static_files import create_static_files_router
from notes import FILE, GATES, NOTES, digest, events, held, lines, work


@asynccontextmanager
async def lifespan(app: Litestar) -> AsyncIterator[None]:
    print("lifespan: startup", flush=True)
    app.state.pool = ["a connection"]
    yield
    print("lifespan: shutdown", flush=True)


async def marking(response: Response[Any]) -> Response[Any]:
    response.headers["x-middleware"] = "yes"
    return response


@get("/hello/{name:str}", media_type=MediaType.TEXT, name="hello")
async def hello(name: str) -> str:
    return f"Hello, {name}!"


@post("/form", status_code=200)
async def form(data: Annotated[dict[str, str], Body(media_type=RequestEncodingType.URL_ENCODED)]) -> dict[str, str]:
    return data


@post("/upload", status_code=200)
async def upload(data: Annotated[dict[str, Any], Body(media_type=RequestEncodingType.MULTI_PART)]) -> dict[str, Any]:
    file: UploadFile = data["file"]
    content = await file.read()
    sha = hashlib.sha256(content).hexdigest()
    return {"name": file.filename, "size": len(content), "sha256": sha, "note": data["note"]}


@post("/raw", status_code=200)
async def raw(request: Request[Any, Any, Any], tag: str = "") -> dict[str, object]:
    return await digest(request.stream(), tag)


@post("/echo", status_code=200)
async def echo(request: Request[Any, Any, Any]) -> Stream:
    return Stream(request.stream(), media_type="application/octet-stream")


@get("/stream")
async def stream() -> Stream:
    return Stream(lines(), media_type="text/plain")


@get("/events")
async def sse(tag: str) -> Stream:
    return Stream(events(tag), media_type="text/event-stream")


@get("/sse")
async def own_sse() -> ServerSentEvent:
    return ServerSentEvent(lines())


@get("/cookies", media_type=MediaType.TEXT)
async def cookies(request: Request[Any, Any, Any]) -> Response[str]:
    seen = request.cookies.get("seen", "never")
    return Response(seen, cookies=[Cookie(key="seen", value="yes"), Cookie(key="other", value="b")])


@get("/file")
async def file() -> File:
    return File(FILE, media_type="application/octet-stream")


@get("/error")
async def error() -> str:
    raise RuntimeError("framework marker")


@get("/state")
async def state(request: Request[Any, Any, Any]) -> list[str]:
    return list(request.app.state.pool)


@get("/background", media_type=MediaType.TEXT)
async def background(tag: str) -> Response[str]:
    return Response("accepted", background=BackgroundTask(work, tag))


@get("/waits")
async def waits(tag: str) -> str:
    await held(tag)
    return "never"


@get("/thread", media_type=MediaType.TEXT, sync_to_thread=True)
def in_a_thread() -> str:
    return str(threading.current_thread() is not threading.main_thread())


@get("/redirect")
async def redirect() -> Redirect:
    return Redirect("/hello/again")


@get("/notes")
async def notes(tag: str) -> list[str]:
    return NOTES[tag]


@get("/go")
async def go(tag: str) -> str:
    GATES[tag].set()
    return "gone"


@websocket("/ws/echo")
async def ws_echo(socket: WebSocket[Any, Any, Any], tag: str = "") -> None:
    await socket.accept(headers={"x-accepted": "yes"})
    try:
        while True:
            message: Any = await socket.receive()
            if message["type"] == "websocket.disconnect":
                NOTES[tag].append(f"{message['code']} {message.get('reason') or ''}")
                return
            if message.get("text") is not None:
                await socket.send_text(message["text"])
            else:
                await socket.send_bytes(message["bytes"])
    except WebSocketDisconnect:
        NOTES[tag].append("sent in vain")


@websocket("/ws/json")
async def ws_json(socket: WebSocket[Any, Any, Any]) -> None:
    await socket.accept(subprotocols=socket.scope["subprotocols"][-1])
    data = await socket.receive_json()
    await socket.send_json({**data, "seen": True, "state": socket.app.state.pool})
    await socket.close(4001, "enough")


@websocket("/ws/refused")
async def ws_refused(socket: WebSocket[Any, Any, Any]) -> None:
    await socket.close(1008)


app = application = Litestar(
    [
        *(hello, form, upload, raw, echo, stream, sse, own_sse, cookies, file, error, state, background, waits),
        *(in_a_thread, redirect, notes, go, ws_echo, ws_json, ws_refused),
        create_static_files_router("/static", directories=[FILE.parent]),
    ],
    lifespan=[lifespan],
    after_request=marking,
)
