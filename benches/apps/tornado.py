"""The application for tornado."""

# Installed where the servers are measured, not where they are type-checked.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-untyped-call,untyped-decorator"

from __future__ import annotations

import asyncio

from tornado import web

from benches.apps.wsgi import CHUNK


class Hello(web.RequestHandler):
    def get(self) -> None:
        self.set_header("Content-Type", "text/plain")
        self.write(b"Hello, World!")


class Sleep(web.RequestHandler):
    async def get(self) -> None:
        await asyncio.sleep(1)
        self.write("slept for a second\n")


class Echo(web.RequestHandler):
    def post(self) -> None:
        self.write(self.request.body)


@web.stream_request_body
class Count(web.RequestHandler):
    def prepare(self) -> None:
        self.request.connection.set_max_body_size(1 << 40)  # type: ignore[union-attr]

    def data_received(self, chunk: bytes) -> None:
        pass

    def post(self) -> None:
        self.finish("ok")


class Stream(web.RequestHandler):
    async def get(self) -> None:
        for _ in range(100):
            self.write(CHUNK)
            await self.flush()


app = web.Application([("/", Hello), ("/io", Sleep), ("/echo", Echo), ("/count", Count), ("/stream", Stream)])
