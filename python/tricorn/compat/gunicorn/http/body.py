"""The class of request bodies, for annotations and `isinstance`."""

from __future__ import annotations

import io
from abc import ABC

from tricorn.compat.absent import refuse


class Body(ABC):  # noqa: B024  # its instances are others
    """Class of `wsgi.input`."""


Body.register(io.BytesIO)
Body.register(io.BufferedIOBase)

__getattr__ = refuse(__name__)
