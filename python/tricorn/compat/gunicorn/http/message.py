"""The request that hooks get."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.gateway.observe import Request

__all__ = ["Message", "Request"]

Message = Request

__getattr__ = refuse(__name__)
