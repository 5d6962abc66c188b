"""All settings, in the order in which help shows them."""

from __future__ import annotations

from tricorn.config.setting import Setting
from tricorn.config.settings import (
    admin,
    application,
    debugging,
    event_loops,
    hooks,
    logging,
    mechanics,
    processes,
    queueing,
    responses,
    security,
    slow_clients,
    socket,
)

SETTINGS: tuple[Setting[object], ...] = (
    *application.SETTINGS,
    *socket.SETTINGS,
    *admin.SETTINGS,
    *processes.SETTINGS,
    *event_loops.SETTINGS,
    *queueing.SETTINGS,
    *mechanics.SETTINGS,
    *slow_clients.SETTINGS,
    *security.SETTINGS,
    *responses.SETTINGS,
    *logging.SETTINGS,
    *debugging.SETTINGS,
    *hooks.SETTINGS,
)  # type: ignore[assignment]  # Setting is invariant, and a tuple of all kinds is wanted

BY_NAME = {setting.name: setting for setting in SETTINGS}
