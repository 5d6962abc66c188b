"""What protocols of aiohttp are told: the end of a response, and of a connection."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

import pytest

from tests.harness import Server
from tests.harness.deadline import until
from tests.harness.needs import needs

pytestmark = pytest.mark.beyond_reference("it has no such class")

needs("aiohttp")

CONNECTIONS = 8


def app(directory: Path, code: str) -> str:
    (directory / "app.py").write_text(dedent(code))
    return "app:make"


def test_all_protocols_are_told_that_their_connections_are_lost_also_behind_one_that_raises(tmp_path: Path) -> None:
    code = """
    from aiohttp import web
    from tricorn.gateway.aiohttp import Handler

    told = []
    own = Handler.connection_lost

    def connection_lost(self, why):
        own(self, why)
        told.append(why)
        if len(told) % 2:
            raise ValueError("of the test")

    Handler.connection_lost = connection_lost

    async def count(request):
        return web.json_response(len(told))

    async def make():
        app = web.Application()
        app.router.add_get("/", count)
        return app
    """
    with Server(app(tmp_path, code), chdir=tmp_path, worker_class="aiohttp") as server, ExitStack() as stack:
        wires = [stack.enter_context(server.connect()) for _ in range(CONNECTIONS)]
        for wire in wires:
            wire.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert all(wire.ended().startswith(b"HTTP/1.1 200 ") for wire in wires)
        with server.connect() as wire:

            def are_all_told() -> bool:
                wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                return wire.reply().body == str(CONNECTIONS).encode()

            until(are_all_told, "all were told")
        server.log.wait("ValueError: of the test", count=CONNECTIONS // 2)


def test_a_runner_of_the_application_logs_its_responses_and_a_short_one_is_cut_off(tmp_path: Path) -> None:
    code = """
    import sys

    from aiohttp import web
    from aiohttp.abc import AbstractAccessLogger

    class Logger(AbstractAccessLogger):
        def log(self, request, response, time):
            print(f"{request.path} took {type(time).__name__}", file=sys.stderr)

    async def short(request):
        response = web.StreamResponse(headers={"Content-Length": "9"})
        await response.prepare(request)
        await response.write(b"four")
        return response

    async def make():
        app = web.Application()
        app.router.add_get("/short", short)
        return web.AppRunner(app, access_log_class=Logger)
    """
    with Server(app(tmp_path, code), chdir=tmp_path, worker_class="aiohttp") as server:
        with server.connect() as wire:
            wire.send(b"GET /short HTTP/1.1\r\nHost: a\r\n\r\n")
            assert wire.ended().endswith(b"\r\n\r\nfour")
        server.log.wait(r"/short took float")
