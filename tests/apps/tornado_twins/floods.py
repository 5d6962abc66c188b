"""What never has to wait (tests/apps/floods.py), for tornado."""

from __future__ import annotations

import floods
from tornado import web


class Flood(web.RequestHandler):
    async def get(self, path: str) -> None:
        if path == "stream":
            for piece in floods.pieces():
                self.write(piece)
                await self.flush()
            await self.finish()
            return
        if path == "work":
            floods.work()
        self.finish(floods.count())


application = web.Application([("/(.*)", Flood)])
