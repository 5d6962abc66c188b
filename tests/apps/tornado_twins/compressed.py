"""Responses as a test describes them (tests/apps/compressed.py), in tornado's words."""

from __future__ import annotations

import asyncio

from compressed import PAUSE, Failed, Play  # the other one: this is tornado_twins.compressed
from tornado import web


class Handler(web.RequestHandler):
    def compute_etag(self) -> None:
        """Tornado's own would answer conditional requests."""

    async def get(self) -> None:
        play = Play(self.request.query)
        self.set_status(play.status, "Status")
        self.clear_header("Content-Type")
        for name, value in play.fields:
            self.add_header(name, value)
        if play.is_whole:
            self.finish(play.body or None)
            return
        for number, piece in enumerate(play.pieces):
            self.write(piece)
            await self.flush()
            while not play.is_open(number):  # noqa: ASYNC110 (a look at a file of the test's)
                await asyncio.sleep(PAUSE)
        if play.fails:
            raise Failed

    head = get


application = web.Application([("/.*", Handler)])
