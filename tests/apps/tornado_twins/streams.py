"""Responses that last, in tornado's words."""

from __future__ import annotations

import asyncio
import sys

from tornado import iostream, web

TICK = 0.05
PIECES = {"/ticks": b"data: tick\n\n", "/half": b"data: half\n", "/text": b"text\n"}


class Stream(web.RequestHandler):
    def prepare(self) -> None:
        self.closed = asyncio.Event()

    def on_connection_close(self) -> None:
        self.closed.set()

    async def get(self) -> None:
        path = self.request.path
        self.set_header("Content-Type", "text/plain" if path == "/text" else "text/event-stream")
        try:
            if path == "/silent":
                self.write(b"data: begun\n\n")
                await self.flush()
                await self.closed.wait()
            else:
                while True:
                    self.write(PIECES[path])
                    await self.flush()
                    await asyncio.sleep(TICK)
        except iostream.StreamClosedError:
            pass
        finally:
            print(f"ended {self.request.method} {path}", file=sys.stderr, flush=True)

    post = get


application = web.Application([("/.*", Stream)])
