"""aiohttp applications, on asyncio or uvloop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tricorn.errors import AppImportError
from tricorn.gateway import aiohttp, observe_asgi
from tricorn.workers.loops import SHUTDOWN_REST, LoopWorker

if TYPE_CHECKING:
    from aiohttp import web

    from tricorn.workers.native import TransportGateway


class AiohttpWorker(LoopWorker):
    """A protocol of aiohttp's for each connection."""

    alias = "aiohttp"
    websockets_over_http2 = True

    _runner: web.AppRunner
    _served: asyncio.Future[None]
    """Done when no request is under way any more, and none will come."""
    _ending: asyncio.Task[None] | None = None
    """`_end_application`, from the moment when the worker was told to leave."""
    _cleaned = False

    def start_up(self) -> bool:
        self._served = self.loop.create_future()
        return self.complete(self._set_up())

    def shut_down(self) -> bool:
        self._served.set_result(None)
        return self.complete(self._tear_down(), SHUTDOWN_REST)

    async def _set_up(self) -> None:
        try:
            self._runner = await aiohttp.make_runner(self.wsgi, self.cfg, self.log)
        except TypeError as error:
            raise AppImportError(f"{self.app.app_uri!r}: {error}") from None
        aiohttp.send_files_natively(self.loop)
        try:
            await self._runner.setup()
        except BaseException:
            await self._clean_up()  # what `cleanup_ctx` began
            raise

    async def _tear_down(self) -> None:
        if self._ending is not None:
            await asyncio.wait((self._ending,))
        await self._clean_up()

    def make_gateway(self) -> TransportGateway:
        before, after = observe_asgi.callbacks(self, self.cfg, self.log)
        return aiohttp.make_gateway(
            self._runner, self.loop, self.cfg, self.log, on_leave=self._told_to_end, before=before, after=after
        )

    def make_stand_in(self, traceback: str) -> Any:
        from aiohttp import web

        async def show(_: web.Request) -> web.Response:
            return web.Response(text=traceback, status=500)

        application = web.Application()
        application.router.add_route("*", "/{tail:.*}", show)
        return application

    def _told_to_end(self) -> None:
        self._ending = self.loop.create_task(self._end_application())

    async def _end_application(self) -> None:
        """`on_shutdown`, on which WebSockets are closed; near the end of `graceful_timeout` handlers are cancelled."""
        await self._wait_until_served(LAST_CALL)
        if isinstance(self._runner, aiohttp.Runner):
            await self._runner.shutdown()
        else:
            await self._clean_up()  # its `cleanup` waits for handlers
        await self._wait_until_served(self.cfg.graceful_timeout * (1 - 2.5 * aiohttp.LAST_RESORT))
        await self._clean_up()

    async def _wait_until_served(self, seconds: float) -> None:
        await asyncio.wait((self._served,), timeout=seconds)

    async def _clean_up(self) -> None:
        """`on_cleanup`, after handlers that still run were waited for and cancelled."""
        if not self._cleaned:
            self._cleaned = True
            await self._runner.cleanup()


LAST_CALL = 0.15
"""Seconds in which connections that wait at the listeners are still taken."""
