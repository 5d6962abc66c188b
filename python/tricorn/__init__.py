"""tricorn: an application server for Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tricorn.cli.program import run
    from tricorn.embedded import serve_async
    from tricorn.errors import RequestCancelled, RequestTimeout
    from tricorn.shutdown import leaving

    offload: Callable[..., Any]
    """Of tricorn-green, `tricorn_green.offload`."""

__all__ = ["RequestCancelled", "RequestTimeout", "__version__", "leaving", "offload", "run", "serve_async"]


def __getattr__(name: str) -> object:
    """Imports public names on first use."""
    if name in ("RequestCancelled", "RequestTimeout"):
        from tricorn import errors

        return getattr(errors, name)
    if name == "leaving":
        from tricorn.shutdown import leaving

        return leaving
    if name == "offload":
        from tricorn import extensions

        return extensions.load(extensions.MODULES, "offloading", "tricorn.offload").offload
    if name == "run":
        from tricorn.cli.program import run

        return run
    if name == "serve_async":
        from tricorn.embedded import serve_async

        return serve_async
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
