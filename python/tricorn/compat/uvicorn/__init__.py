"""The name of uvicorn where it is not installed: modules import it that do not use it, as under `__main__`."""

from __future__ import annotations

from tricorn.compat.absent import refuse

__getattr__ = refuse(__name__)
