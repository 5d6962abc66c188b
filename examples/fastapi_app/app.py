"""A small FastAPI application: JSON, an upload, server-sent events, and a chat over WebSockets with its page."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypedDict

from fastapi import FastAPI, Request, UploadFile, WebSocket
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import BaseModel
from room import Queue, Room

PAGE = Path(__file__).with_name("chat.html")
LONGEST_LINE = 1000
#: Seconds. A comment is sent when nothing was said for so long, so that proxies keep the connection.
SILENCE = 15


class State(TypedDict):
    room: Room


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[State]:
    yield {"room": Room()}


app = FastAPI(title="fastapi_app", lifespan=lifespan)


@app.get("/", response_class=FileResponse)
async def page() -> Path:
    return PAGE


@app.get("/worker")
async def worker() -> dict[str, int | str]:
    """Which process answers, and which event loop it runs."""
    return {"pid": os.getpid(), "loop": type(asyncio.get_running_loop()).__module__}


class Item(BaseModel):
    name: str
    price: float
    amount: int = 1


@app.post("/total")
async def total(items: list[Item]) -> dict[str, float]:
    return {"total": sum(item.price * item.amount for item in items)}


@app.post("/upload")
async def upload(file: UploadFile) -> dict[str, int | str | None]:
    """Reads the file in pieces: it may be larger than memory."""
    digest, size = hashlib.sha256(), 0
    while piece := await file.read(65536):
        digest.update(piece)
        size += len(piece)
    return {"name": file.filename, "size": size, "sha256": digest.hexdigest()}


@app.get("/people")
async def people(request: Request) -> list[str]:
    """Who is in the chat."""
    return room_of(request).names()


@app.get("/events")
async def events(request: Request) -> StreamingResponse:
    """What is said in the chat, as server-sent events."""
    return StreamingResponse(lines(room_of(request)), media_type="text/event-stream")


async def lines(room: Room) -> AsyncIterator[str]:
    with room.entered() as queue:
        yield ": welcome\n\n"
        while True:
            try:
                line = await asyncio.wait_for(queue.get(), SILENCE)
            except asyncio.TimeoutError:
                yield ": nothing was said\n\n"
                continue
            if line is None:
                return
            yield f"data: {json.dumps(line)}\n\n"


@app.websocket("/chat")
async def chat(websocket: WebSocket, name: str = "guest") -> None:
    """Text that comes is said to all."""
    await websocket.accept()
    room = room_of(websocket)
    with room.entered(name) as queue:
        writer = asyncio.create_task(write(websocket, queue))
        try:
            async for text in websocket.iter_text():
                room.say(name, text[:LONGEST_LINE])
        finally:
            writer.cancel()


async def write(websocket: WebSocket, queue: Queue) -> None:
    while (line := await queue.get()) is not None:
        await websocket.send_json(line)
    await websocket.close(code=1013, reason="you did not keep up")


def room_of(connection: Request | WebSocket) -> Room:
    room: Room = connection.state.room
    return room
