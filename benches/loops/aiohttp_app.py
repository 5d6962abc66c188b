"""Hello in aiohttp."""

# Installed where the servers are that this is compared with, not where it is type-checked.
# mypy: disable-error-code="import-not-found,import-untyped,misc"

from __future__ import annotations

import asyncio
import sys

from aiohttp import web


async def hello(request: web.Request) -> web.Response:
    return web.Response(body=b"Hello, World!", content_type="text/plain")


app = web.Application()
app.router.add_get("/", hello)


def main(loop: str, port: int) -> None:
    """On aiohttp's own runner."""
    if loop == "uvloop":
        import uvloop

        asyncio.set_event_loop(uvloop.new_event_loop())
    else:
        asyncio.set_event_loop(asyncio.new_event_loop())
    web.run_app(
        app, host="127.0.0.1", port=port, access_log=None, backlog=2048, print=None, loop=asyncio.get_event_loop()
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
