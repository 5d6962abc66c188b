"""An aiohttp application that uses what touches the server; what happens outside of responses it notes in a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from aiohttp import WSCloseCode, WSMsgType, web

SOCKETS: web.AppKey[set[web.WebSocketResponse]] = web.AppKey("sockets", set)
POOL: web.AppKey[list[str]] = web.AppKey("pool", list)
TICKS: web.AppKey[list[int]] = web.AppKey("ticks", list)
routes = web.RouteTableDef()


def note(event: str) -> None:
    if path := os.environ.get("EVENTS"):
        with open(path, "a") as file:
            file.write(f"{event}\n")


@routes.get("/")
async def hello(_: web.Request) -> web.Response:
    return web.Response(text="Hello, world!\n")


@routes.get("/facts")
async def facts(request: web.Request) -> web.Response:
    transport = request.transport
    assert transport is not None
    socket = transport.get_extra_info("socket")
    return web.json_response(
        {
            "remote": request.remote,
            "peername": transport.get_extra_info("peername"),
            "sockname": transport.get_extra_info("sockname"),
            "real_peername": socket.getpeername(),
            "scheme": request.scheme,
            "host": request.host,
            "version": list(request.version),
            "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in request.raw_headers],
            "raw_path": request.raw_path,
            "path": request.path,
            "query": dict(request.query),
            "closing": transport.is_closing(),
            "loop": type(asyncio.get_running_loop()).__module__,
            "pool": request.app[POOL],
            "ticks": len(request.app[TICKS]) > 0,
            "nothing": transport.get_extra_info("cipher", "none"),
        }
    )


@routes.route("*", "/echo")
async def echo(request: web.Request) -> web.Response:
    body = await request.read()
    return web.Response(body=body, headers={"X-Method": request.method, "X-Length": str(len(body))})


@routes.post("/count")
async def count(request: web.Request) -> web.Response:
    """Reads slowly if asked to."""
    length, most = 0, 0
    async for piece in request.content.iter_any():
        length += len(piece)
        most = max(most, len(piece))
        if "slow" in request.query:
            await asyncio.sleep(0.002)
    return web.json_response({"length": length, "most": most})


@routes.post("/shout")
async def shout(request: web.Request) -> web.StreamResponse:
    """Answers while it reads."""
    response = web.StreamResponse()
    await response.prepare(request)
    async for piece in request.content.iter_any():
        await response.write(piece.upper())
    await response.write_eof()
    return response


@routes.post("/form")
async def form(request: web.Request) -> web.Response:
    fields = {}
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            fields[name] = [value.filename, value.content_type, len(value.file.read())]
        else:
            fields[name] = [str(value)]
    return web.json_response(fields)


@routes.post("/multipart")
async def multipart(request: web.Request) -> web.Response:
    parts = []
    async for part in await request.multipart():
        size = 0
        while piece := await part.read_chunk():
            size += len(piece)
        parts.append([part.name, part.filename, size])
    return web.json_response(parts)


@routes.post("/unread")
async def unread(_: web.Request) -> web.Response:
    return web.Response(text="not read\n")


async def picky(request: web.Request) -> None:
    if request.headers.get("X-Length") == "too much":
        raise web.HTTPExpectationFailed(text="no\n")
    assert request.transport is not None
    request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


@routes.post("/picky", expect_handler=picky)
async def picked(request: web.Request) -> web.Response:
    return web.Response(body=await request.read())


@routes.get("/stream/{count}/{size}")
async def stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    if "length" in request.query:
        response.content_length = int(request.query["length"])
    if "chunked" in request.query:
        response.enable_chunked_encoding()
    if "gzip" in request.query:
        response.enable_compression(web.ContentCoding.gzip)
    await response.prepare(request)
    for _ in range(int(request.match_info["count"])):
        await response.write(b"x" * int(request.match_info["size"]))
    note("stream is over")
    return response


@routes.get("/events")
async def events(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for number in range(1000):
        await response.write(f"data: {number}\n\n".encode())
        await asyncio.sleep(0.02)
    return response


@routes.get("/torn")
async def torn(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"part")
    raise RuntimeError("torn")


@routes.get("/fail")
async def fail(_: web.Request) -> web.Response:
    raise RuntimeError("as asked for")


@routes.get("/file")
async def file(_: web.Request) -> web.FileResponse:
    return web.FileResponse(Path(os.environ["FILE"]), headers={"X-File": "yes"})


@routes.get("/status/{status}")
async def status(request: web.Request) -> web.Response:
    return web.Response(status=int(request.match_info["status"]))


@routes.get("/found")
async def found(_: web.Request) -> web.Response:
    raise web.HTTPFound("/")


@routes.get("/goes-on")
async def goes_on(request: web.Request) -> web.StreamResponse:
    """Does something more when its response is complete, which is the connection's last."""
    response = web.StreamResponse()
    response.force_close()
    await response.prepare(request)
    await response.write_eof(b"the last")
    try:
        for _ in range(20):
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        note("cancelled after its response")
        raise
    note("went on")
    return response


@routes.get("/close")
async def close(_: web.Request) -> web.Response:
    response = web.Response(text="last\n")
    response.force_close()
    return response


@routes.get("/drop")
async def drop(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response(text="not seen")


@routes.get("/splits")
async def splits(_: web.Request) -> web.Response:
    return web.Response(headers={"X-Bad": "a\r\nX-Evil: b"})


@routes.get("/wait/{seconds}")
async def wait(request: web.Request) -> web.Response:
    note("waits")
    try:
        await asyncio.sleep(float(request.match_info["seconds"]))
    except asyncio.CancelledError:
        note("cancelled")
        raise
    note("has waited")
    return web.Response(text="waited\n")


@routes.get("/background")
async def background(_: web.Request) -> web.Response:
    async def work() -> None:
        await asyncio.sleep(0.05)
        note("background")

    task = asyncio.create_task(work())
    KEEP.add(task)
    task.add_done_callback(KEEP.discard)
    return web.Response(text="later\n")


KEEP: set[asyncio.Task[None]] = set()


@routes.get("/ws")
async def ws(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(protocols=("chat", "superchat"), max_msg_size=1 << 20)
    await socket.prepare(request)
    request.app[SOCKETS].add(socket)
    try:
        async for message in socket:
            if message.type is WSMsgType.TEXT and message.data == "close":
                await socket.close(code=4001, message=b"as you wish")
            elif message.type is WSMsgType.TEXT:
                await socket.send_str(message.data)
            elif message.type is WSMsgType.BINARY:
                await socket.send_bytes(message.data)
    finally:
        request.app[SOCKETS].discard(socket)
        note(f"websocket closed {socket.close_code}")
    return socket


async def on_startup(app: web.Application) -> None:
    note("startup")
    app[POOL].append("startup")


async def on_shutdown(app: web.Application) -> None:
    note("shutdown")
    for socket in list(app[SOCKETS]):
        await socket.close(code=WSCloseCode.GOING_AWAY, message=b"server shutdown")


async def on_cleanup(_: web.Application) -> None:
    note("cleanup")


async def pool(app: web.Application) -> AsyncIterator[None]:
    app[POOL].append("opened")
    yield
    note("pool closed")


async def ticker(app: web.Application) -> AsyncIterator[None]:
    """A task beside the requests, as aiohttp's documentation has it."""

    async def tick() -> None:
        while True:
            app[TICKS].append(1)
            await asyncio.sleep(0.05)

    task = asyncio.create_task(tick())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    note("ticker ended")


def make() -> web.Application:
    application = web.Application(client_max_size=1 << 26)
    application[SOCKETS] = set()
    application[POOL] = []
    application[TICKS] = []
    application.add_routes(routes)
    application.on_startup.append(on_startup)
    application.on_shutdown.append(on_shutdown)
    application.on_cleanup.append(on_cleanup)
    application.cleanup_ctx.extend((pool, ticker))
    return application


app = make()


async def factory() -> web.Application:
    note("made")
    return make()


async def runner() -> web.AppRunner:
    """With options of its own: handlers are cancelled when their clients leave."""
    return web.AppRunner(make(), handler_cancellation=True, access_log=None, shutdown_timeout=1)


async def nothing() -> int:
    return 1


def broken() -> web.Application:
    """Its start fails; what was begun before is ended."""
    application = make()

    async def breaks(_: web.Application) -> None:
        raise RuntimeError("no database")

    application.on_startup.append(breaks)
    return application
