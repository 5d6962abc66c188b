"""Servers for tests of applications: `with tricorn.testing.serve(app) as server:`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn.testing.in_process import Embedded, embedded
    from tricorn.testing.server import Server, ServerError, serve

__all__ = ["Embedded", "Server", "ServerError", "embedded", "serve"]

_MODULES = {
    "Embedded": "tricorn.testing.in_process",
    "embedded": "tricorn.testing.in_process",
    "Server": "tricorn.testing.server",
    "ServerError": "tricorn.testing.server",
    "serve": "tricorn.testing.server",
}


def __getattr__(name: str) -> object:
    """Imported on demand: pytest imports this package in every project."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
