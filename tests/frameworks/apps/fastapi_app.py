"""The sample application in FastAPI."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import (
    BackgroundTasks,
    Cookie,
    Depends,
    FastAPI,
    Form,
    Request,
    Response,
    UploadFile,
    WebSocket,
    WebSocketDisconnect,
    WebSocketException,
)
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from notes import FILE, GATES, NOTES, digest, events, held, lines, work


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    print("lifespan: startup", flush=True)
    yield {"pool": ["a connection"]}
    print("lifespan: shutdown", flush=True)


app = application = FastAPI(lifespan=lifespan)
app.mount("/static", StaticFiles(directory=FILE.parent))


async def resource(tag: str = "") -> AsyncIterator[str]:
    """A dependency that is given back when the request is over."""
    try:
        yield tag
    finally:
        NOTES[tag].append("given back")


@app.middleware("http")
async def marking(request: Request, call_next: Any) -> Response:
    response: Response = await call_next(request)
    response.headers["x-middleware"] = "yes"
    return response


@app.get("/hello/{name}", response_class=PlainTextResponse)
async def hello(name: str) -> str:
    return f"Hello, {name}!"


@app.post("/form")
async def form(a: Annotated[str, Form()], b: Annotated[str, Form()]) -> dict[str, str]:
    return {"a": a, "b": b}


@app.post("/upload")
async def upload(file: UploadFile, note: Annotated[str, Form()]) -> dict[str, Any]:
    data = await file.read()
    return {"name": file.filename, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "note": note}


@app.post("/raw")
async def raw(request: Request, tag: str = "") -> dict[str, object]:
    return await digest(request.stream(), tag)


@app.post("/echo")
async def echo(request: Request) -> StreamingResponse:
    return StreamingResponse(request.stream(), media_type="application/octet-stream")


@app.get("/stream")
async def stream() -> StreamingResponse:
    return StreamingResponse(lines(), media_type="text/plain")


@app.get("/events")
async def sse(tag: str) -> StreamingResponse:
    return StreamingResponse(events(tag), media_type="text/event-stream")


@app.get("/cookies")
async def cookies(seen: Annotated[str, Cookie()] = "never") -> Response:
    response = PlainTextResponse(seen)
    response.set_cookie("seen", "yes")
    response.set_cookie("other", "b")
    return response


@app.get("/file")
async def file() -> FileResponse:
    return FileResponse(FILE, media_type="application/octet-stream")


@app.get("/error")
async def error() -> None:
    raise RuntimeError("framework marker")


@app.get("/state")
async def state(request: Request) -> list[str]:
    return list(request.state.pool)


@app.get("/background", response_class=PlainTextResponse)
async def background(tag: str, tasks: BackgroundTasks) -> str:
    tasks.add_task(work, tag)
    return "accepted"


@app.get("/waits")
async def waits(tag: Annotated[str, Depends(resource)]) -> None:
    await held(tag)


@app.get("/thread", response_class=PlainTextResponse)
def in_a_thread() -> str:
    return str(threading.current_thread() is not threading.main_thread())


@app.get("/redirect")
async def redirect(request: Request) -> RedirectResponse:
    return RedirectResponse(request.url_for("hello", name="again"))


@app.get("/notes")
async def notes(tag: str) -> JSONResponse:
    return JSONResponse(NOTES[tag])


@app.get("/go")
async def go(tag: str) -> str:
    GATES[tag].set()
    return "gone"


@app.websocket("/ws/echo")
async def ws_echo(websocket: WebSocket, tag: str = "") -> None:
    await websocket.accept(headers=[(b"x-accepted", b"yes")])
    try:
        while True:
            message = await websocket.receive()
            if message.get("text") is not None:
                await websocket.send_text(message["text"])
            elif message.get("bytes") is not None:
                await websocket.send_bytes(message["bytes"])
            else:
                NOTES[tag].append(f"{message['code']} {message.get('reason') or ''}")
                return
    except WebSocketDisconnect:
        NOTES[tag].append("sent in vain")


@app.websocket("/ws/json")
async def ws_json(websocket: WebSocket) -> None:
    await websocket.accept(subprotocol=websocket.scope["subprotocols"][-1])
    data = await websocket.receive_json()
    await websocket.send_json({**data, "seen": True, "state": websocket.state.pool})
    await websocket.close(4001, "enough")


@app.websocket("/ws/refused")
async def ws_refused(websocket: WebSocket) -> None:
    raise WebSocketException(1008)


@app.websocket("/ws/denied")
async def ws_denied(websocket: WebSocket) -> None:
    await websocket.send_denial_response(PlainTextResponse("not you", 401))
