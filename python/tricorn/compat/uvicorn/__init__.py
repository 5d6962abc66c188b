"""uvicorn's API for programs that start the server: `run`, `Config`, `Server`; see `tricorn.compat`."""

from __future__ import annotations

from typing import Any

from tricorn.compat.absent import refuse

__version__ = "0.54.0"
"""Version of uvicorn whose behaviour is reproduced."""

_missing = refuse(__name__)


def __getattr__(name: str) -> Any:
    if name not in ("Config", "Server", "main", "run"):
        return _missing(name)
    # Only now: modules import uvicorn that do not use it. `main` is the function, as in uvicorn, and not its module.
    from .main import Config, Server, main, run

    globals().update(Config=Config, Server=Server, main=main, run=run)
    return globals()[name]
