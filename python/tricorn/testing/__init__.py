"""Servers for tests of applications: `with tricorn.testing.serve(app) as server:`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn.testing.server import Server, ServerError, serve

__all__ = ["Server", "ServerError", "serve"]


def __getattr__(name: str) -> object:
    """Imported on demand: pytest imports this package in every project."""
    if name in __all__:
        from tricorn.testing import server

        return getattr(server, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
