"""tricorn: an application server for Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn.cli.program import run
    from tricorn.errors import RequestTimeout

__all__ = ["RequestTimeout", "__version__", "run"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """What applications may want to name, imported by those who do."""
    if name == "RequestTimeout":
        from tricorn.errors import RequestTimeout

        return RequestTimeout
    if name == "run":
        from tricorn.cli.program import run

        return run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
