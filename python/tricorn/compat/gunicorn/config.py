"""The configuration, as hooks get it."""

from __future__ import annotations

import os
from sys import platform as PLATFORM

from tricorn.compat.absent import refuse
from tricorn.config.config import Config

__all__ = ["PLATFORM", "Config", "get_default_config_file"]


def get_default_config_file() -> str | None:
    path = os.path.join(os.path.abspath(os.getcwd()), "gunicorn.conf.py")
    return path if os.path.exists(path) else None


__getattr__ = refuse(__name__)
