"""All settings, in the order in which help shows them."""

from __future__ import annotations

from tricorn.config.setting import Setting
from tricorn.config.settings import debugging, logging, process, security, slow_clients, socket

SETTINGS: tuple[Setting[object], ...] = (
    *socket.SETTINGS,
    *process.SETTINGS,
    *slow_clients.SETTINGS,
    *security.SETTINGS,
    *logging.SETTINGS,
    *debugging.SETTINGS,
)  # type: ignore[assignment]  # Setting is invariant, and a tuple of all kinds is wanted

BY_NAME = {setting.name: setting for setting in SETTINGS}
