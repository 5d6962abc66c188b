"""Starts the servers that have a Python API instead of a command line.

python -m tricorn.bench.launch SERVER MODULE:APPLICATION PORT
"""

# The peers are not installed where this file is type-checked.
# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from tricorn.gateway import app_loader


def bjoern(application: Any, port: int) -> None:
    import bjoern

    bjoern.run(application, "127.0.0.1", port)


def fastwsgi(application: Any, port: int) -> None:
    import fastwsgi

    fastwsgi.run(application, "127.0.0.1", port)


def fastpysgi(application: Any, port: int) -> None:
    import fastpysgi

    fastpysgi.run(application, "127.0.0.1", port)


def meinheld(application: Any, port: int) -> None:
    from meinheld import server

    server.listen(("127.0.0.1", port))
    server.set_keepalive(60)
    server.set_access_logger(None)
    server.run(application)


LAUNCHERS: dict[str, Callable[[Any, int], None]] = {
    launcher.__name__: launcher for launcher in (bjoern, fastwsgi, fastpysgi, meinheld)
}


def main() -> None:
    server, target, port = sys.argv[1:4]
    sys.path.insert(0, os.getcwd())  # as every server with a command line does
    LAUNCHERS[server](app_loader.load(target), int(port))


if __name__ == "__main__":
    main()
