"""`tricorn.serve_async`: the server on an event loop that runs already, in this process."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import tricorn
from tricorn.embedded import EmbeddedServer
from tricorn.errors import BindError, BootError, ConfigError

from tests.harness.deadline import PATIENCE

pytestmark = pytest.mark.beyond_reference("it has no such function")

Scope, Receive, Send = dict[str, Any], Callable[..., Any], Callable[..., Any]


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), PATIENCE))

    return run


class Application:
    """Answers with its process, or as the path says."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.begun = asyncio.Event()
        self.released = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while True:
                kind = (await receive())["type"]
                self.told.append(kind)
                await send({"type": f"{kind}.complete"})
                if kind == "lifespan.shutdown":
                    return
        if scope["path"] == "/held":
            self.begun.set()
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.told.append("cancelled")
                raise
        if scope["path"] == "/events":
            await stream(send, self.begun)
            return
        body = b"%d" % os.getpid()
        fields = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": body})


async def stream(send: Send, begun: asyncio.Event) -> None:
    fields = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    while True:
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        begun.set()
        await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(app: Any, **settings: Any) -> AsyncIterator[tuple[EmbeddedServer, tuple[str, int]]]:
    server = EmbeddedServer(app, **{"port": 0, "loglevel": "critical", **settings})
    await server.start()
    try:
        yield server, server.listeners[0].getsockname()[:2]
    finally:
        await server.stop()


async def get(address: tuple[str, int], path: str = "/") -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % path.encode())
    answer = await reader.read()
    writer.close()
    return answer


@on_a_loop
async def test_requests_are_tasks_of_the_loop_that_runs() -> None:
    app = Application()
    async with serving(app) as (server, address):
        assert (await get(address)).endswith(b"\r\n\r\n%d" % os.getpid())
        assert app.told == ["lifespan.startup"]
        assert not server.leaving
    assert app.told == ["lifespan.startup", "lifespan.shutdown"]
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)


@on_a_loop
async def test_two_servers_run_on_one_loop() -> None:
    async with serving(Application()) as (_, one), serving(Application()) as (_, other):
        assert one != other
        answers = await asyncio.gather(get(one), get(other))
        assert all(b" 200 OK" in answer for answer in answers)


@on_a_loop
async def test_a_request_is_finished_before_the_application_shuts_down() -> None:
    app = Application()
    async with serving(app) as (server, address):
        held = asyncio.create_task(get(address, "/held"))
        await app.begun.wait()
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0)
        assert app.told == ["lifespan.startup"]
        app.released.set()
        await stopping
        assert b" 200 OK" in await held
    assert app.told == ["lifespan.startup", "lifespan.shutdown"]


@on_a_loop
async def test_a_request_is_cancelled_when_the_patience_ends_or_the_server_is_to_be_quick() -> None:
    for settings, quick in (({"graceful_timeout": 0.1}, False), ({}, True)):
        app = Application()
        async with serving(app, **settings) as (server, address):
            held = asyncio.create_task(get(address, "/held"))
            await app.begun.wait()
            server.leave(quick=quick)
            await server.stop()
            assert b" 200 OK" not in await held
        assert app.told == ["lifespan.startup", "cancelled", "lifespan.shutdown"]


@on_a_loop
async def test_the_task_may_be_cancelled() -> None:
    app = Application()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serve = tricorn.serve_async(app, sockets=[listener], loglevel="critical", graceful_timeout=10 * PATIENCE)
        serving = asyncio.create_task(serve)
        held = asyncio.create_task(get(listener.getsockname(), "/held"))
        await app.begun.wait()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        await held
        assert app.told == ["lifespan.startup", "cancelled", "lifespan.shutdown"]
        listener.getsockname()  # it is still the caller's


@on_a_loop
async def test_a_unix_socket_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    app = Application()
    async with serving(app, port=None, bind=f"unix:{path}"):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert b" 200 OK" in await reader.read()
        writer.close()
    assert not path.exists()


async def fails(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})


@on_a_loop
async def test_a_lifespan_that_fails_leaves_nothing_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    with pytest.raises(BootError, match="no database"):
        await tricorn.serve_async(fails, port=address[1], loglevel="critical")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)


@on_a_loop
async def test_an_address_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(BindError):
        await tricorn.serve_async(Application(), port=listener.getsockname()[1], loglevel="critical")


@pytest.mark.parametrize("setting", [{"workers": 2}, {"reload": True}, {"preload_app": True}, {"warmup": ["/"]}])
@on_a_loop
async def test_what_needs_processes_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"tricorn.serve_async\(\): {next(iter(setting))} needs worker processes"):
        await tricorn.serve_async(Application(), **setting)


@on_a_loop
async def test_an_application_for_another_interface_is_refused() -> None:
    def wsgi(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        return []

    with pytest.raises(ConfigError, match=r"is for WSGI.*tricorn\.run"):
        await tricorn.serve_async(wsgi, port=0)


@on_a_loop
async def test_told_to_leave_before_it_serves() -> None:
    waiting = asyncio.Event()

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        waiting.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    server = EmbeddedServer(never, port=0, loglevel="critical")
    starting = asyncio.create_task(server.start())
    await waiting.wait()
    server.leave()
    await starting
    await server.stop()


@on_a_loop
async def test_an_event_stream_ends_whole() -> None:
    app = Application()
    async with serving(app, graceful_timeout=10 * PATIENCE) as (server, address):
        reading = asyncio.create_task(get(address, "/events"))
        await app.begun.wait()
        await server.stop()
        assert (await reading).endswith(b"data: 1\n\n\r\n0\r\n\r\n")
