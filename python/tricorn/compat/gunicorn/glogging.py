"""The server's logger, to derive from."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.log.atoms import SafeAtoms
from tricorn.log.configured import CONFIG_DEFAULTS
from tricorn.log.logger import Logger
from tricorn.log.names import all_loggers as loggers

__all__ = ["CONFIG_DEFAULTS", "Logger", "SafeAtoms", "loggers"]

__getattr__ = refuse(__name__)
