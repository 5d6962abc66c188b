"""The sample application in Quart."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator
from typing import Any

from notes import FILE, GATES, NOTES, digest, events, held, lines, work
from quart import Quart, Response, abort, jsonify, make_response, redirect, request, send_file, url_for, websocket

app = application = Quart(__name__, static_folder=str(FILE.parent), static_url_path="/static")
app.config["RESPONSE_TIMEOUT"] = None
POOL: list[str] = []


@app.while_serving
async def lifespan() -> AsyncIterator[None]:
    print("lifespan: startup", flush=True)
    POOL.append("a connection")
    yield
    print("lifespan: shutdown", flush=True)


@app.after_request
async def marking(response: Response) -> Response:
    response.headers["x-middleware"] = "yes"
    return response


@app.get("/hello/<name>")
async def hello(name: str) -> str:
    return f"Hello, {name}!"


@app.post("/form")
async def form() -> Response:
    return jsonify((await request.form).to_dict())


@app.post("/upload")
async def upload() -> Response:
    file = (await request.files)["file"]
    data = file.read()
    note = (await request.form)["note"]
    return jsonify(name=file.filename, size=len(data), sha256=hashlib.sha256(data).hexdigest(), note=note)


@app.post("/raw")
async def raw() -> Response:
    return jsonify(await digest(request.body.__aiter__(), request.args.get("tag", "")))


@app.post("/echo")
async def echo() -> Response:
    body = request.body

    async def pieces() -> AsyncIterator[bytes]:
        async for piece in body:
            yield piece

    return Response(pieces(), content_type="application/octet-stream")


@app.get("/stream")
async def stream() -> Response:
    return Response(lines(), content_type="text/plain")


@app.get("/events")
async def sse() -> Response:
    return Response(events(request.args["tag"]), content_type="text/event-stream")


@app.get("/cookies")
async def cookies() -> Any:
    response: Any = await make_response(request.cookies.get("seen", "never"))
    response.set_cookie("seen", "yes")
    response.set_cookie("other", "b")
    return response


@app.get("/file")
async def file() -> Response:
    return await send_file(FILE, mimetype="application/octet-stream")


@app.get("/error")
async def error() -> str:
    raise RuntimeError("framework marker")


@app.get("/state")
async def state() -> Response:
    return jsonify(POOL)


@app.get("/background")
async def background() -> str:
    app.add_background_task(work, request.args["tag"])
    return "accepted"


@app.get("/waits")
async def waits() -> str:
    await held(request.args["tag"])
    return "never"


@app.get("/thread")
def in_a_thread() -> str:
    return str(threading.current_thread() is not threading.main_thread())


@app.get("/redirect")
async def redirected() -> Any:
    return redirect(url_for("hello", name="again"))


@app.get("/notes")
async def notes() -> Response:
    return jsonify(NOTES[request.args["tag"]])


@app.get("/go")
async def go() -> str:
    GATES[request.args["tag"]].set()
    return "gone"


@app.websocket("/ws/echo")
async def ws_echo() -> None:
    await websocket.accept(headers={"x-accepted": "yes"})
    try:
        while True:
            await websocket.send(await websocket.receive())
    except asyncio.CancelledError:
        NOTES[websocket.args.get("tag", "")].append("cancelled")
        raise


@app.websocket("/ws/json")
async def ws_json() -> None:
    await websocket.accept(subprotocol=websocket.requested_subprotocols[-1])
    data = await websocket.receive_json()
    await websocket.send_json({**data, "seen": True, "state": POOL})
    await websocket.close(4001, "enough")


@app.websocket("/ws/refused")
async def ws_refused() -> None:
    await websocket.close(1008)


@app.websocket("/ws/denied")
async def ws_denied() -> None:
    abort(401, "not you")
