"""Applications that fork, one for each interface. `/?how=…` says what becomes of the child, the answer how it ended.

A parent waits for its child, but for one that lives on: that waits for a signal, which it does not handle.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl

Told = dict[str, Any]


def act(given: dict[str, str]) -> Told:
    """What a request asks for. In a child: comes back, or does not."""
    how = given.get("how", "")
    told: Told = {"pid": os.getpid(), "id": given.get("id")}
    if how in MODULES:
        return told | MODULES[how]()
    if not how:
        return told
    child = os.fork()
    if child:
        return told | {"child": child} | ({} if how in LIVING else {"status": status_of(child)})
    if how in CHILDREN:
        CHILDREN[how](given)
    return told


def status_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def exits(_: dict[str, str]) -> None:
    sys.exit(7)


def exits_with_text(_: dict[str, str]) -> None:
    sys.exit("the child says why")


def raises(_: dict[str, str]) -> None:
    raise ValueError("the child failed")


def leaves(_: dict[str, str]) -> None:
    os._exit(9)


def lives(_: dict[str, str]) -> None:
    signal.pause()


def sleeps(_: dict[str, str]) -> None:
    """Under a greenlet library the child's other greenlets get on, if there are any."""
    time.sleep(3600)


LIVING = ("lives", "sleeps")
CHILDREN = {
    "exits": exits,
    "text": exits_with_text,
    "raises": raises,
    "leaves": leaves,
    "lives": lives,
    "sleeps": sleeps,
}


def square(connection: Any, number: int) -> None:
    connection.send(number * number)
    sys.exit(5)


def process() -> Told:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=square, args=(sender, 12))
    worker.start()
    result = receiver.recv()
    worker.join()
    return {"result": result, "status": worker.exitcode}


def read_for_ever(connection: Any) -> None:
    connection.recv()


def terminated() -> Told:
    """A child that is ended by a signal, which the worker itself handles."""
    context = multiprocessing.get_context("fork")
    receiver, _ = context.Pipe(duplex=False)
    worker = context.Process(target=read_for_ever, args=(receiver,))
    worker.start()
    worker.terminate()
    worker.join()
    return {"status": worker.exitcode}


def program() -> Told:
    done = subprocess.run(["sh", "-c", "echo hello; exit 3"], stdout=subprocess.PIPE, check=False)
    return {"result": done.stdout.decode(), "status": done.returncode}


def program_in_its_session() -> Told:
    """With `preexec_fn` the standard library forks as an application does."""
    done = subprocess.run(["sh", "-c", "exit 4"], preexec_fn=os.setsid, check=False)
    return {"status": done.returncode}


def ended_at_once() -> Told:
    """gevent: a child that has ended before anybody can say that its end is waited for."""
    from gevent import os as gevent_os

    def fork_and_dawdle() -> int:
        child: int = gevent_os.fork_gevent()
        if not child:
            os._exit(6)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        return child

    return {"status": status_of(gevent_os.fork_and_watch(fork=fork_and_dawdle))}


def spawned() -> Told:
    """A program that inherits all descriptors, and that outlives the server."""
    return {"child": os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ)}


MODULES = {
    "spawned": spawned,
    "at_once": ended_at_once,
    "process": process,
    "terminated": terminated,
    "program": program,
    "session": program_in_its_session,
}


def encoded(told: Told) -> bytes:
    return json.dumps(told).encode()


def wsgi(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    given = dict(parse_qsl(environ["QUERY_STRING"]))
    if given.get("how") == "yields":
        start_response("200 OK", [])
        return pieces(given)
    body = encoded(act(given))
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def pieces(given: dict[str, str]) -> Iterator[bytes]:
    """The fork comes after the first byte of the response."""
    yield b" "
    yield encoded(act(given))


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        raise ValueError(scope["type"])
    given = dict(parse_qsl(scope["query_string"].decode()))
    body = encoded(await asynchronously(given))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def asynchronously(given: dict[str, str]) -> Told:
    where = given.get("where")
    if where == "later":
        await asyncio.sleep(0)  # the loop makes the next step, and not the server
    if where == "executor":
        return await asyncio.get_running_loop().run_in_executor(None, act, given)
    never = asyncio.get_running_loop().create_future()
    told = act(given)
    if given.get("how") == "awaits" and told["pid"] != os.getpid():
        await never
    return told


def tornado() -> Any:
    from tornado import web

    class Handler(web.RequestHandler):
        async def get(self) -> None:
            self.write(await asynchronously({name: self.get_query_argument(name) for name in self.request.arguments}))

    return web.Application([("/", Handler)])


def aiohttp() -> Any:
    from aiohttp import web

    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=encoded(await asynchronously(dict(request.query))))

    application = web.Application()
    application.router.add_get("/", handler)
    return application
