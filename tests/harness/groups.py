"""Exception groups: before Python 3.11 those of the package that pytest and anyio need there."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from builtins import BaseExceptionGroup, ExceptionGroup
else:
    from exceptiongroup import BaseExceptionGroup, ExceptionGroup  # type: ignore[import-not-found]

__all__ = ["BaseExceptionGroup", "ExceptionGroup"]
