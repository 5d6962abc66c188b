"""Starts the servers that have a Python API instead of a command line.

python -m benches.end_to_end.launch SERVER MODULE:APPLICATION PORT
"""

# The peers are not installed where this file is type-checked.
# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


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


def waitress(application: Any, port: int) -> None:
    import waitress

    # As many connections as every other server here takes; its select() could not watch more than a thousand.
    waitress.serve(application, host="127.0.0.1", port=port, threads=4, connection_limit=20000, asyncore_use_poll=True)


LAUNCHERS: dict[str, Callable[[Any, int], None]] = {
    launcher.__name__: launcher for launcher in (bjoern, fastwsgi, fastpysgi, meinheld, waitress)
}


def main() -> None:
    server, target, port = sys.argv[1:]
    module, _, name = target.partition(":")
    application = getattr(importlib.import_module(module), name)
    LAUNCHERS[server](application, int(port))


if __name__ == "__main__":
    main()
