"""An ASGI application that prints what happens to it, a line each; LIFESPAN in the environment says how it starts.

    complete  fails  raises  exits  other (does not know lifespan)  a path (waits until there is such a file)

A request is answered with the pid:

    /state   with what the scope's state holds   /sleep?s     later       /after?s   and goes on for so long
    /stops   though it stops the loop            /task-exits  though a task calls sys.exit

A WebSocket is accepted, echoes, and prints with which code it ended; /stubborn goes on after that.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

HOW = os.environ.get("LIFESPAN", "complete")


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await live(scope, receive, send)
    elif scope["type"] == "websocket":
        await listen(scope, receive, send)
    else:
        await answer(scope, send)


async def live(scope: dict[str, Any], receive: Any, send: Any) -> None:
    assert HOW != "other", "only http"
    await receive()
    say("startup")
    if HOW == "fails":
        await send({"type": "lifespan.startup.failed", "message": "Traceback:\nOSError: no database"})
        return
    if HOW == "raises":
        raise OSError("no database")
    if HOW == "exits":
        sys.exit(9)
    while HOW.startswith("/") and not os.path.exists(HOW):  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.01)
    scope["state"] |= {"pool": "a pool", "list": []}
    poller = asyncio.ensure_future(poll())
    await send({"type": "lifespan.startup.complete"})
    await receive()
    say(f"shutdown, the poller {'was cancelled before' if poller.done() else 'runs'}")
    poller.cancel()
    await send({"type": "lifespan.shutdown.complete"})


async def poll() -> None:
    while True:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def listen(scope: dict[str, Any], receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] != "websocket.disconnect":
        await send({"type": "websocket.send", "text": message["text"]})
    say(f"the WebSocket ended with {message['code']}")
    if scope["path"] == "/stubborn":
        await sleep(60, "/stubborn")


async def answer(scope: dict[str, Any], send: Any) -> None:
    path, query = scope["path"], scope["query_string"].decode()
    body = str(os.getpid())
    if path == "/sleep":
        await sleep(float(query), path)
    elif path == "/state":
        state = scope.get("state", {})
        body = json.dumps(state)
        if state:
            state["mine"] = "not seen by others"
            state["list"].append(1)
    elif path == "/task-exits":
        task = asyncio.ensure_future(leave())
        await asyncio.wait([task])
    elif path == "/stops":
        asyncio.get_running_loop().stop()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body.encode()})
    if path == "/after":
        await sleep(float(query), path)


async def sleep(seconds: float, path: str) -> None:
    say(f"{path} begins")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        say(f"{path} is cancelled")
        raise
    say(f"{path} ends")


async def leave() -> None:
    sys.exit(3)
