"""Starts the servers that have a Python API instead of a command line.

python -m tricorn_bench.bench.launch SERVER MODULE:APPLICATION HOST PORT [CERTIFICATE KEY]
"""

# The peers are not installed where this file is type-checked.
# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable
from typing import Any

from tricorn.gateway import app_loader


def bjoern(application: Any, host: str, port: int) -> None:
    import bjoern

    bjoern.run(application, host, port)


def fastwsgi(application: Any, host: str, port: int) -> None:
    import fastwsgi

    fastwsgi.run(application, host, port)


def fastpysgi(application: Any, host: str, port: int) -> None:
    import fastpysgi

    fastpysgi.run(application, host, port)


def meinheld(application: Any, host: str, port: int) -> None:
    from meinheld import server

    server.listen((host, port))
    server.set_keepalive(60)
    server.set_access_logger(None)
    server.run(application)


def tornado(application: Any, host: str, port: int) -> None:
    """Serves on tornado's own server."""
    import asyncio

    from tornado.httpserver import HTTPServer

    async def serve() -> None:
        HTTPServer(application, ssl_options=secured()).listen(port, host, backlog=2048)
        await asyncio.Event().wait()

    asyncio.run(serve())


def aiohttp(application: Any, host: str, port: int) -> None:
    """Serves on aiohttp's own runner."""
    from aiohttp import web

    web.run_app(application, host=host, port=port, access_log=None, backlog=2048, print=None, ssl_context=secured())


def secured() -> ssl.SSLContext | None:
    """Returns a context with the certificate of the command line; None: without TLS."""
    if len(sys.argv) < 7:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*sys.argv[5:7])
    return context


LAUNCHERS: dict[str, Callable[[Any, str, int], None]] = {
    launcher.__name__: launcher for launcher in (bjoern, fastwsgi, fastpysgi, meinheld, tornado, aiohttp)
}


def main() -> None:
    server, target, host, port = sys.argv[1:5]
    sys.path.insert(0, os.getcwd())  # as every server with a command line does
    LAUNCHERS[server](app_loader.load(target), host, int(port))


if __name__ == "__main__":
    main()
