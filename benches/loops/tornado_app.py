"""Hello in tornado."""

# Installed where the servers are that this is compared with, not where it is type-checked.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-untyped-call"

from __future__ import annotations

import asyncio
import sys

from tornado import web
from tornado.httpserver import HTTPServer


class Hello(web.RequestHandler):
    def get(self) -> None:
        self.set_header("Content-Type", "text/plain")
        self.write(b"Hello, World!")


app = web.Application([("/", Hello)])


async def main(port: int) -> None:
    """On tornado's own server."""
    HTTPServer(app).listen(port, "127.0.0.1", backlog=2048)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
