"""Requests whose clients leave: what each way to wait holds is counted, and given back in `finally`.

`/held` waits for what never comes, `/listens` for the disconnect, `/streams` sends without end, `/uploads` reads a
body, `/query?s=` runs a query in PostgreSQL (DATABASE_URL) for so long, `/rows` streams one to its client. `/counts`
tells what is held now; with `?objects` it collects garbage first, and gives free memory back.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

held = 0
seen = 0


async def endless(scope: Message, receive: Receive, send: Send) -> None:
    await receive()
    await asyncio.Event().wait()


async def listens(scope: Message, receive: Receive, send: Send) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def streams(scope: Message, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": b"s" * 16_384, "more_body": True})


async def uploads(scope: Message, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass


async def query(scope: Message, receive: Receive, send: Send) -> None:
    """One connection for one request, as a pool would lend it."""
    import psycopg

    given = dict(parse_qsl(scope["query_string"].decode()))
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as connection:
        row = await (await connection.execute("SELECT pg_sleep(%s), 42", [float(given["s"])])).fetchone()
    await answer(send, row and row[1])


async def rows(scope: Message, receive: Receive, send: Send) -> None:
    import psycopg

    await send({"type": "http.response.start", "status": 200, "headers": []})
    connect = psycopg.AsyncConnection.connect
    async with await connect(os.environ["DATABASE_URL"]) as connection, connection.cursor("rows") as cursor:
        await cursor.execute("SELECT repeat('r', 10000) FROM generate_series(1, 10000000)")
        async for row in cursor:
            await send({"type": "http.response.body", "body": row[0].encode(), "more_body": True})


WAYS = {"/held": endless, "/listens": listens, "/streams": streams, "/uploads": uploads, "/query": query, "/rows": rows}


async def answer(send: Send, what: object) -> None:
    text = json.dumps(what).encode()
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": text})


async def application(scope: Message, receive: Receive, send: Send) -> None:
    global held, seen
    if scope["type"] != "http":
        raise ValueError(f"{scope['type']} is nothing for this application")
    if scope["path"] == "/counts":
        tasks = len(asyncio.all_tasks())
        if scope["query_string"] == b"objects":
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
            await answer(send, {"held": held, "seen": seen, "tasks": tasks, "objects": len(gc.get_objects())})
        else:
            await answer(send, {"held": held, "seen": seen, "tasks": tasks})
        return
    held, seen = held + 1, seen + 1
    try:
        await WAYS[scope["path"]](scope, receive, send)
    finally:
        held -= 1
