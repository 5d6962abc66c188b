"""The gallery for aiohttp: what the suites that know nothing of an interface ask for, under the same names."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qsl

from aiohttp import web

calls = 0


def given(request: web.Request) -> dict[str, str]:
    return dict(pairs(request))


def pairs(request: web.Request) -> list[tuple[str, str]]:
    return parse_qsl(request.raw_path.partition("?")[2], keep_blank_values=True, encoding="latin-1")


def answer(data: bytes, kind: str = "text/plain") -> web.Response:
    return web.Response(body=data, headers={"Content-Type": kind})


async def begin(request: web.Request, *fields: tuple[str, str], status: int = 200) -> web.StreamResponse:
    response = web.StreamResponse(status=status)
    for name, value in fields:
        response.headers.add(name, value)
    await response.prepare(request)
    return response


async def hello(_: web.Request) -> web.StreamResponse:
    return answer(b"Hello\n")


async def sleep(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(float(given(request).get("s", "0.2")))
    return answer(str(os.getpid()).encode())


async def blob(request: web.Request) -> web.StreamResponse:
    return answer(b"b" * int(given(request)["size"]), "application/octet-stream")


async def body(request: web.Request) -> web.StreamResponse:
    global calls
    whole = await request.read()
    calls += 1
    told = {"length": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}
    return answer(json.dumps(told).encode(), "application/json")


async def echo(request: web.Request) -> web.StreamResponse:
    """What WSGI's environ would have, as far as it is about the request."""
    facts = {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": request.path,
        "QUERY_STRING": request.raw_path.partition("?")[2],
        "RAW_URI": request.raw_path,
    }
    for name, value in request.raw_headers:
        facts["HTTP_" + name.decode().upper().replace("-", "_")] = value.decode("latin-1")
    told = {key: [type(value).__name__, value] for key, value in facts.items()}
    return answer(json.dumps(told).encode(), "application/json")


async def stream(request: web.Request) -> web.StreamResponse:
    asked = given(request)
    count, size, pause = int(asked.get("count", "3")), int(asked.get("size", "10")), float(asked.get("pause", "0"))
    fields = [("Content-Type", "application/octet-stream")]
    if "length" in asked:
        fields.append(("Content-Length", str(count * size)))
    response = await begin(request, *fields)
    for number in range(count):
        if pause and number:
            await asyncio.sleep(pause)
        await response.write(bytes([97 + number % 26]) * size)
    await asyncio.sleep(float(asked.get("rest", "0")))
    return response


async def fields(request: web.Request) -> web.StreamResponse:
    status = int(given(request).get("status", "200")[:3])
    own = [(name, value) for name, value in pairs(request) if name not in ("status", "raw")]
    response = await begin(request, ("Content-Type", "text/plain"), *own, status=status)
    await response.write(b"body")
    return response


async def nothing(request: web.Request) -> web.StreamResponse:
    return await begin(request, ("Content-Type", "text/plain"))


async def files(_: web.Request) -> web.StreamResponse:
    return web.FileResponse(__file__)


async def gate(request: web.Request) -> web.StreamResponse:
    """Waits until the file `open` exists; that it waits is seen by another file."""
    path = Path(given(request)["open"])
    Path(f"{path}.in.{os.getpid()}.{id(request)}").touch()  # noqa: ASYNC240
    for _ in range(4000):
        if path.exists():  # noqa: ASYNC240
            break
        await asyncio.sleep(0.005)
    return answer(f"{os.getpid()} {len(await request.read())}".encode())


async def crash(request: web.Request) -> web.StreamResponse:
    when = given(request)["when"]
    if when == "later":
        response = await begin(request, ("Content-Type", "text/plain"))
        await response.write(b"begun")
    raise RuntimeError(f"crash marker: {when}")


BEHAVIOURS: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
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


@web.middleware
async def serve(request: web.Request, handler: object) -> web.StreamResponse:
    """Before any route, since the router knows no `OPTIONS *`."""
    global calls
    name = request.path.partition("/")[2].partition("/")[0]
    if name == "count":
        return answer(str(calls).encode())
    if name == "pid":
        return answer(str(os.getpid()).encode())
    # A request that is to be read to its end counts when it has been: before that it may turn out to be none.
    calls += name != "body"
    return await BEHAVIOURS.get(name, hello)(request)


application = web.Application(client_max_size=1 << 40, middlewares=[serve])
