"""tricorn: an application server for Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tricorn.cli.program import run
    from tricorn.embedded import serve_async
    from tricorn.errors import RequestCancelled, RequestTimeout
    from tricorn.shutdown import leaving
    from tricorn.version import __version__

    offload: Callable[..., Any]
    """`tricorn_green.offload`, of tricorn-green."""

__all__ = ["RequestCancelled", "RequestTimeout", "__version__", "leaving", "offload", "run", "serve_async"]


MODULES = {
    "RequestCancelled": "errors",
    "RequestTimeout": "errors",
    "__version__": "version",
    "leaving": "shutdown",
    "run": "cli.program",
    "serve_async": "embedded",
}
"""Modules of the public names."""


def __getattr__(name: str) -> object:
    """Imports public names on first use."""
    if name in MODULES:
        from importlib import import_module

        return getattr(import_module(f"tricorn.{MODULES[name]}"), name)
    if name == "offload":
        from tricorn import extensions

        return extensions.load(extensions.MODULES, "offloading", "tricorn.offload").offload
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
