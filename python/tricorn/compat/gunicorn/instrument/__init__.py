"""A package of gunicorn's names."""

from __future__ import annotations

from tricorn.compat.absent import refuse

__getattr__ = refuse(__name__)
