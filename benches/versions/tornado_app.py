"""The cases in tornado, by path."""

# Installed where the servers are measured, not where they are type-checked.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-untyped-call"

from __future__ import annotations

from tornado import web

from benches.end_to_end.apps import CHUNK
from benches.loops.tornado_app import Hello


class Echo(web.RequestHandler):
    def post(self) -> None:
        self.write(self.request.body)


class Stream(web.RequestHandler):
    async def get(self) -> None:
        for _ in range(100):
            self.write(CHUNK)
            await self.flush()


app = web.Application([("/", Hello), ("/echo", Echo), ("/stream", Stream)])
