"""What is an aiohttp application, and what of its runner is left to the server."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness.needs import needs

needs("aiohttp")

CONFIG: Any = SimpleNamespace(graceful_timeout=30, asgi_disconnect_grace_period=3, route_metrics=0)
LOG: Any = logging.getLogger("test")


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """By the process that runs these tests: all others collect them, too."""
    global web
    from aiohttp import web


def made(found: object) -> Any:
    from tricorn.gateway import aiohttp

    return asyncio.run(aiohttp.make_runner(found, CONFIG, LOG))


def test_applications_and_those_who_make_them() -> None:
    application = web.Application()

    async def make() -> Any:
        return application

    assert made(application).app is application
    assert made(make).app is application


def test_a_runner_keeps_its_options() -> None:
    runner = web.AppRunner(web.Application(), handler_cancellation=True)

    async def make() -> Any:
        return runner

    assert made(make) is runner


def test_anything_else_is_named() -> None:
    async def make() -> int:
        return 1

    for found, what in ((lambda environ, start: [], "function"), (make, "not 1")):
        with pytest.raises(TypeError, match=what):
            made(found)


def test_on_shutdown_is_sent_once() -> None:
    application = web.Application()
    told = []

    async def on_shutdown(_: Any) -> None:
        told.append("shutdown")

    async def run() -> None:
        from tricorn.gateway import aiohttp

        application.on_shutdown.append(on_shutdown)
        runner = await aiohttp.make_runner(application, CONFIG, LOG)
        await runner.setup()
        await runner.shutdown()
        await runner.cleanup()

    asyncio.run(run())
    assert told == ["shutdown"]


def test_files_over_transports_of_others_go_their_way() -> None:
    async def run() -> None:
        from tricorn.gateway import aiohttp

        loop = asyncio.get_running_loop()
        asked = []

        async def own(transport: Any, *_: Any, **__: Any) -> int:
            asked.append(transport)
            return 1

        loop.sendfile = own  # type: ignore[method-assign]
        aiohttp.send_files_natively(loop)
        assert await loop.sendfile("transport", None) == 1  # type: ignore[arg-type]
        assert asked == ["transport"]

    asyncio.run(run())
